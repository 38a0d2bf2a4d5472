"""No bound: the next soft vote is the mean vote (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedvote.influence.influence import Influence


@dataclass(frozen=True)
class Unbounded(Influence):
    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        return mean_D
