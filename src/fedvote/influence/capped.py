"""Capped moves: no weight moves farther than a limit in one round.

The limit is the largest move that a few clients could cause by all voting the same way. Many rounds can still add up.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedvote.influence.influence import Influence
from fedvote.settings import check_above_zero


@dataclass(frozen=True)
class Capped(Influence):
    most: float = 0.2  # largest move of a soft vote 2 p - 1 in one round

    def __post_init__(self) -> None:
        check_above_zero(self, "most")

    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        return before_D + (mean_D - before_D).clamp(-self.most, self.most)
