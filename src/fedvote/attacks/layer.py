"""Layer: honest training and votes, but the votes of some layers inverted. Knows its own message alone.

A small layer is a small part of a ballot, so rules that compare whole ballots do not see it. The first layer has few
weights, and everything after it depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.randomness import Key


@dataclass(frozen=True)
class Layer(Attack):
    layers: tuple[str, ...] = ()  # names of weights, with * and ?; empty: the first layer
    share: float = 1.0  # of each layer's votes, the same for all attackers in all rounds

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}, expected a number above 0, at most 1")

    def tamper(self, seen: Seen) -> Message:
        inverted_d, sent = self.weights(seen), dict(seen.own)
        for name in seen.bulk:
            rows_HN = seen.own[name]
            if rows_HN.shape[1] > int(inverted_d[-1]):  # voted weights come first in a message; others have no layers
                opposite_HN = seen.opposite(name, rows_HN)
                sent[name] = rows_HN.index_copy(1, inverted_d, opposite_HN[:, inverted_d])
        return sent

    def weights(self, seen: Seen) -> Tensor:
        """Indices of the weights to invert, in ascending order."""
        device = next(iter(seen.own.values())).device
        key, chosen = Key(seen.keys[0].seed), []
        for name, part in named_layers(self.layers, seen).items():
            order = torch.randperm(part.stop - part.start, generator=key.torch(f"attack {name}"))
            chosen.append(part.start + order[: max(1, round(self.share * len(order)))])
        return torch.cat(chosen).sort().values.to(device)


def named_layers(patterns: tuple[str, ...], seen: Seen) -> dict[str, slice]:
    """The layers that have these names, with * and ?, and their places in a message; without names, the first layer."""
    wanted = patterns or tuple(seen.layers)[:1]
    found = {n: part for n, part in seen.layers.items() if any(fnmatchcase(n, each) for each in wanted)}
    if not found:
        raise ConfigError(f"layers is {patterns}, expected names among: {', '.join(seen.layers)}")
    return found
