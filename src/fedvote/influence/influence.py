"""The contract of a bound on influence: the last soft vote and a round's tally -> the next soft vote."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedvote.settings import Settings


@dataclass(frozen=True)
class Influence(Settings, ABC):
    """A pure function of each weight. It cannot know who is hostile: it bounds what any few clients can do."""

    binary_tally_only: ClassVar[bool] = False  # whether the mean must be of this round's binary votes, all -1 or +1

    @abstractmethod
    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        """The next soft vote, 2 p - 1.

        `before_D`: the broadcast; `mean_D`: the weighted mean of the votes; `ballots`: how many ballots of equal weight
        the weights amount to, (sum lambda)^2 / sum lambda^2.
        """
