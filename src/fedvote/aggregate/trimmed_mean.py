"""The mean of each coordinate without its largest and smallest values: Yin et al., 2018; counts every client once.

`trim` values are dropped at each end, so the rule withstands that many hostile clients. Yin et al. and Flower set a
fraction beta instead: trim = floor(beta K).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.aggregate.aggregate import Coordinatewise, refuse_unequal
from fedvote.aggregate.blocks import blocks
from fedvote.errors import ConfigError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class TrimmedMean(Coordinatewise):
    counts_heads: ClassVar[bool] = True
    trim: int = 1  # values of each coordinate to drop at each end

    def __post_init__(self) -> None:
        check_at_least(self, trim=0)

    def check(self, K: int) -> None:
        if (needed := 2 * self.trim + 1) > K:
            raise ConfigError(
                f"TrimmedMean with trim = {self.trim} needs at least {needed} clients in a round, got {K}; "
                "take more clients or trim less"
            )

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        refuse_unequal(self, weights_K)
        K = len(rows_KD)
        self.check(K)

        # 1 / (K - 2 t) sum_{t <= k < K - t} x_(k) of the sorted x_(0) <= ... <= x_(K-1)
        ordered = (block.sort(dim=0).values for block in blocks(rows_KD))
        return torch.cat([block[self.trim : K - self.trim].mean(0) for block in ordered])
