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
from fedvote.attacks.layer import named_layers
from fedvote.attacks.longest_move import longest_move, untrained
from fedvote.core import Message
from fedvote.settings import check_above_zero


@dataclass(frozen=True)
class Reflect(Attack):
    joint: ClassVar[bool] = True
    layers: tuple[str, ...] = ()  # names of weights, with * and ?; empty: the first layer
    work: float = 2.0  # number of innovations in a layer, relative to the attackers' own honest ballots

    def __post_init__(self) -> None:
        check_above_zero(self, "work")

    def tamper(self, seen: Seen) -> Message:
        return seen.own | {name: self.reflected(name, seen) for name in seen.bulk}

    def reflected(self, name: str, seen: Seen) -> Tensor:
        own_HN = seen.own[name]
        start_N = seen.start(name)
        sent_HN = own_HN.clone()
        for part in named_layers(self.layers, seen).values():
            if own_HN.is_floating_point():
                sent_HN[:, part] = start_N[part] - self.work * (own_HN[:, part].mean(0) - start_N[part])
            elif part.stop <= len(start_N):  # other tensors have no layers
                sent_HN[:, part] = self.votes(own_HN, start_N, part, seen)
        return sent_HN

    def votes(self, own_HN: Tensor, start_N: Tensor, part: slice, seen: Seen) -> Tensor:
        """The attackers' votes of one layer."""
        innovations_Hn = (own_HN - untrained(own_HN, start_N, seen.keys))[:, part].sign()
        direction_N = torch.zeros_like(start_N)
        direction_N[part] = -innovations_Hn.float().mean(0)
        allowed = self.work * int(innovations_Hn.abs().sum())
        return longest_move(own_HN, start_N, direction_N, allowed, seen.keys)[:, part]
