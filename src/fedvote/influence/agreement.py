"""Agreement: a weight moves only as far as enough clients agree on. After robust learning rate (Ozdayi et al., 2021).

Independent votes of n clients about the broadcast have a mean with the standard deviation sqrt((1 - (2 p - 1)^2) / n).
The move of a weight is shortened by some of these deviations: what is left is more than a few clients, or chance, can
cause. In the paper a coordinate on which too few agree moves backwards; here it stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.influence.influence import Influence


@dataclass(frozen=True)
class Agreement(Influence):
    deviations: float = 0.5  # of the mean of independent votes, by which every move is shortened

    def __post_init__(self) -> None:
        if not 0 <= self.deviations < math.inf:
            raise ConfigError(f"deviations is {self.deviations}, expected a finite number from 0 on")

    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        move_D = mean_D - before_D
        chance_D = ((1 - before_D.square()) / ballots).sqrt()

        # s + sign(m - s) max(0, |m - s| - z sigma)
        return before_D + move_D.sign() * (move_D.abs() - self.deviations * chance_D).clamp_min(0)
