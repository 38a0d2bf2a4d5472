"""Frame: attackers side with a few honest clients in some layers, to make all other honest clients the minority there.

The attackers train honestly. In the named layers they vote as if they had learned what the victims learned in this
round, and the opposite of what all other honest clients learned, each rounding for itself. Attackers near half are the
majority together with their victims, so that a rule that trusts the larger of two camps leaves out the others. From
round `turns` on they invert all votes. Knows every honest message and random number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.layer import named_layers
from fedvote.attacks.longest_move import longest_move, untrained
from fedvote.core import Message
from fedvote.settings import check_above_zero, check_at_least


@dataclass(frozen=True)
class Frame(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    victims: int = 2  # honest clients with whom the attackers side
    layers: tuple[str, ...] = ()  # names of weights, with * and ?; empty: the first layer
    work: float = 1.0  # number of innovations in a layer, relative to the attackers' own honest ballots
    turns: int = 8  # the round from which on all votes are inverted

    def __post_init__(self) -> None:
        check_at_least(self, victims=1, turns=1)
        check_above_zero(self, "work")

    def tamper(self, seen: Seen) -> Message:
        if seen.keys[0].round >= self.turns:
            return seen.own | {name: seen.opposite(name, seen.own[name]) for name in seen.bulk}
        return seen.own | {name: self.framing(name, seen) for name in seen.bulk}

    def framing(self, name: str, seen: Seen) -> Tensor:
        own_HN, honest_GN = seen.own[name], seen.honest[name]
        start_N = seen.start(name)
        if own_HN.is_floating_point():
            learned_GN = honest_GN - start_N
        else:
            learned_GN = (honest_GN - untrained(honest_GN, start_N, seen.honest_keys[: len(honest_GN)])).sign().float()
        sides_N = learned_GN[: self.victims].mean(0) - learned_GN[self.victims :].mean(0).nan_to_num()
        sent_HN = own_HN.clone()
        for part in named_layers(self.layers, seen).values():
            if part.stop > len(start_N):  # other tensors have no layers
                continue
            direction_N = torch.zeros_like(start_N)
            direction_N[part] = sides_N[part]
            if own_HN.is_floating_point():
                sent_HN[:, part] = start_N[part] + self.work * direction_N[part]
                continue
            allowed = self.work * int((own_HN != untrained(own_HN, start_N, seen.keys))[:, part].sum())
            sent_HN[:, part] = longest_move(own_HN, start_N, direction_N, allowed, seen.keys)[:, part]
        return sent_HN
