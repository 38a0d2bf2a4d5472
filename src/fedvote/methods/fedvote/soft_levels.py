"""The few levels to which a soft vote is rounded before it is broadcast: their number, their values, the rounding.

Level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1 if levels are even, and for sin(pi / 2 (2 j / (L - 1) - 1)) if they
are spaced by the arcsine. The mean of K votes has a standard deviation of sqrt((1 - w^2) / K) around w, and its arcsine
one of 1 / sqrt(K) everywhere: the noise of votes reaches the next level equally often from all of them.
The outermost levels stand for clip(-1) and clip(1), which is where local training starts.

Rounding to the nearest level forgets moves of less than half a step. `carry` keeps the rest on the server and adds it
to the next soft vote (error feedback, Seide et al. 2014): small moves add up until a level is crossed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedvote.codecs.levels import MOST_BROADCAST_LEVELS
from fedvote.errors import ConfigError
from fedvote.quantize import clip, from_level
from fedvote.randomness import SERVER, Key, as_uniform, shared_random

Rounding = Literal["nearest", "random", "carry"]
Spacing = Literal["even", "arcsine"]
EXACT = 2**20  # values are whole multiples of 1 / EXACT: the same on every machine


@dataclass(frozen=True)
class SoftLevels:
    number: int  # 0: as many as the tally has
    rounding: Rounding
    spacing: Spacing
    p_min: float

    def check(self) -> None:
        """ConfigError for a number of levels that cannot be sent, or of which `p_min` makes two equal."""
        if self.number and not 2 <= self.number <= MOST_BROADCAST_LEVELS:
            raise ConfigError(f"levels is {self.number}, expected 0 (all) or 2 to {MOST_BROADCAST_LEVELS}")
        if self.number > 2 and float(self.values()[-2]) >= 1 - 2 * self.p_min:
            raise ConfigError(
                f"levels is {self.number} and p_min {self.p_min}, which makes the two levels at each end equal: "
                f"choose fewer levels, a smaller p_min{', or level_spacing = even' * (self.spacing == 'arcsine')}"
            )

    def values(self) -> Tensor:
        """(L,) 2 p - 1 for each level."""
        even_L = from_level(torch.arange(self.number), self.number).double()
        if self.spacing == "even":
            return even_L.float()
        return (torch.sin(even_L * (math.pi / 2)) * EXACT).round().div(EXACT).float()

    def arcsine(self, levels: int) -> bool:
        """Whether a soft vote of so many levels has the spacing of the arcsine."""
        return self.spacing == "arcsine" and levels == self.number

    def value(self, level_D: Tensor, levels: int) -> Tensor:
        """2 p - 1: the mean votes that these levels, of so many, stand for."""
        if self.arcsine(levels):
            return self.values().to(level_D.device).index_select(0, level_D.int())
        return from_level(level_D, levels)

    def round(self, soft_D: Tensor, key: Key) -> Tensor:
        """The level nearest to each soft vote; or the one below or above, so that the mean is clip(soft); int16."""
        value_L = clip(self.values(), self.p_min).to(soft_D.device)
        inside_D = clip(soft_D, self.p_min)

        # t = j + (w - w_j) / (w_(j+1) - w_j), for w between the values of levels j and j + 1
        below_D = torch.searchsorted(value_L[1:-1].contiguous(), inside_D, right=True, out_int32=True)
        low_D, high_D = value_L.index_select(0, below_D), value_L.index_select(0, below_D + 1)
        t_D = below_D + (inside_D - low_D) / (high_D - low_D).clamp_min(1 / EXACT)

        # the whole number nearest to t, or the one just above t - u
        numbers_D = self.numbers(key, len(soft_D), soft_D.device)
        level_D = t_D.round() if numbers_D is None else (t_D - as_uniform(numbers_D)).ceil().clamp_min(0)
        return level_D.to(torch.int16)

    def numbers(self, key: Key, count: int, device: torch.device | str) -> Tensor | None:
        """The shared random numbers that round the soft vote of this round's ballots; None: to the nearest."""
        return shared_random(Key(key.seed, key.round, SERVER), count, device) if self.rounding == "random" else None
