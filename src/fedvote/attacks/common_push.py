"""Common push: all attackers move the same few weights, by their own random numbers. Knows its own messages alone.

A direction is drawn anew in each round, so that nobody undoes it round after round. On a share of the weights, the same
for all attackers, they vote as if training had moved the broadcast that way; elsewhere as if they had learned nothing.
The move is as long as their own training's work allows: they have as many innovations as honest clients. But honest
innovations cancel each other in the tally, and these add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.attacks.longest_move import longest_move, untrained
from fedvote.core import Message
from fedvote.settings import check_above_zero

HALVINGS = 12  # steps of the search for the length of the move


@dataclass(frozen=True)
class CommonPush(Attack):
    joint: ClassVar[bool] = True
    share: float = 0.15  # of the weights that are pushed
    work: float = 1.0  # number of innovations, relative to the attackers' own honest ballots

    def __post_init__(self) -> None:
        check_share(self.share)
        check_above_zero(self, "work")

    def tamper(self, seen: Seen) -> Message:
        return seen.own | {name: self.pushed(name, seen) for name in seen.bulk}

    def pushed(self, name: str, seen: Seen) -> Tensor:
        own_HN = seen.own[name]
        start_N = seen.start(name)
        generator = seen.shared.torch("common push", own_HN.device)
        uniform_N = torch.rand(own_HN.shape[1:], generator=generator, device=own_HN.device)

        # -1 and +1 on half of the share each, 0 elsewhere
        direction_N = (uniform_N < self.share).float() - 2 * (uniform_N < self.share / 2).float()
        if own_HN.is_floating_point():
            lengths_H = (own_HN - start_N).abs().sum(1, keepdim=True)
            return start_N + self.work * lengths_H * direction_N / direction_N.abs().sum().clamp_min(1)
        allowed = self.work * int((own_HN != untrained(own_HN, start_N, seen.keys)).sum())
        return longest_move(own_HN, start_N, direction_N, allowed, seen.keys, most=2.0, halvings=HALVINGS)
