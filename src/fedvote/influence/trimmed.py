"""Trimmed tallies: a share of the votes at both ends does not count. Yin et al., 2018, for votes.

Of each weight the same share of the highest and of the lowest votes is dropped, and the rest is averaged. A minority of
that share has no influence on weights on which all others agree. Near one half it is the median: the plurality.

The mean of binary votes is enough: it says how many there are of each. A mean of ternary votes does not say it. Neither
does a mean of changes or late ballots, which may lie beyond -1 and +1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.influence.influence import Influence


@dataclass(frozen=True)
class Trimmed(Influence):
    binary_tally_only: ClassVar[bool] = True
    share: float = 0.1  # of the vote weight at each end

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ConfigError(f"share is {self.share}, expected a number from 0 to below 0.5")

    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        # p -> (p - t) / (1 - 2 t), clipped to [0, 1], with m = 2 p - 1
        return (mean_D / (1 - 2 * self.share)).clamp(-1, 1)
