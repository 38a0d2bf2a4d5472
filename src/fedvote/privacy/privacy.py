"""The contract of a privacy: clients blur the weights that they vote by, and the server corrects the mean vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from fedvote.settings import Settings


@dataclass(frozen=True)
class Privacy(Settings):
    """Votes as they are: nothing is blurred, and nothing is promised."""

    def blur(self, w_KD: Tensor, start_D: Tensor) -> Tensor:
        """The normalised weights that clients round to votes; `start_D`: the soft vote 2 p - 1 of the broadcast."""
        return w_KD

    def correct(self, mean_D: Tensor) -> Tensor:
        """An unbiased mean vote, from the mean of blurred votes."""
        return mean_D

    def account(self, rounds: Mapping[int, int], last: int, weights: int) -> dict[str, float]:
        """Numbers for the record; `rounds`: voters -> rounds so far with so many; `last`: voters of this round."""
        return {}
