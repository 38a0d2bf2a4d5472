"""Reflect: honest training, but in some layers the votes of clients that learned the opposite. Knows its own messages.

Attackers train honestly. In the named layers they estimate what honest clients learn by the mean of their own
innovations, where a vote departs from that of an untrained client. There they vote as if training had moved the
broadcast the other way, each rounding for itself, as far as `work` allows. Elsewhere they vote honestly. So a
ballot has about as many innovations as an honest one in every layer, and pulls with the honest in most of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import alphabet_of
from fedvote.attacks.layer import named_layers
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.quantize import round_by_shared_random

HALVINGS = 14  # steps of the search for the length of the move
LONGEST = 20.0  # move of 2 p - 1, for innovations of all attackers: everything that moves is decided then


@dataclass(frozen=True)
class Reflect(Attack):
    joint: ClassVar[bool] = True
    layers: tuple[str, ...] = ()  # names of weights, with * and ?; empty: the first layer
    work: float = 2.0  # number of innovations in a layer, relative to the attackers' own honest ballots

    def __post_init__(self) -> None:
        if not 0 < self.work < float("inf"):
            raise ConfigError(f"work is {self.work}, expected a finite number above 0")

    def tamper(self, seen: Seen) -> Message:
        return seen.own | {name: self.reflected(name, seen) for name in seen.bulk}

    def reflected(self, name: str, seen: Seen) -> Tensor:
        own_HN = seen.own[name]
        start_N = seen.unmoved.get(name, torch.zeros_like(own_HN[0], dtype=torch.float32)).float()
        sent_HN = own_HN.clone()
        for part in named_layers(self.layers, seen).values():
            if own_HN.is_floating_point():
                sent_HN[:, part] = start_N[part] - self.work * (own_HN[:, part].mean(0) - start_N[part])
            elif part.stop <= len(start_N):  # other tensors have no layers
                sent_HN[:, part] = self.votes(own_HN, start_N, part, seen)
        return sent_HN

    def votes(self, own_HN: Tensor, start_N: Tensor, part: slice, seen: Seen) -> Tensor:
        """The attackers' votes of one layer."""

        def voted(direction_n: Tensor | None = None, length: float = 0.0) -> Tensor:
            moved_N = start_N.clone()
            if direction_n is not None:
                moved_N[part] = (start_N[part] + length * direction_n).clamp(-1, 1)
            return round_by_shared_random(moved_N.expand(own_HN.shape), alphabet_of(own_HN), seen.keys)[:, part]

        untrained_Hn = voted()
        innovations_Hn = (own_HN[:, part] - untrained_Hn).sign()
        direction_n = -innovations_Hn.float().mean(0)

        # bisection for the longest move with as many innovations
        allowed, least, most = self.work * int(innovations_Hn.abs().sum()), 0.0, LONGEST
        for _ in range(HALVINGS):
            length = (least + most) / 2
            fits = int((voted(direction_n, length) != untrained_Hn).sum()) <= allowed
            least, most = (length, most) if fits else (least, length)
        return voted(direction_n, least)
