"""Nearest-neighbour mixing, then the trimmed mean: Allouah et al., 2023 (NNM, arXiv 2302.01772).

Every row is replaced by the mean of the K - f rows that are nearest to it, itself among them. That brings honest rows
together before the trimmed mean drops the f largest and smallest values of each coordinate. Counts every client once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.aggregate.aggregate import Aggregate, refuse_unequal
from fedvote.aggregate.blocks import blocks, squared_distances
from fedvote.aggregate.trimmed_mean import TrimmedMean
from fedvote.errors import ConfigError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class NearestNeighbourMixing(Aggregate):
    counts_heads: ClassVar[bool] = True
    byzantine: int = 1  # f, the number of hostile clients to withstand

    def __post_init__(self) -> None:
        check_at_least(self, byzantine=0)

    def check(self, K: int) -> None:
        if (needed := 2 * self.byzantine + 1) > K:
            raise ConfigError(
                f"NearestNeighbourMixing with byzantine = {self.byzantine} needs at least {needed} clients in a round, "
                f"got {K}; take more clients or a smaller byzantine"
            )

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        refuse_unequal(self, weights_K)
        self.check(K := len(rows_KD))
        nearest_Kn = squared_distances(rows_KD, rows_KD).argsort(dim=1, stable=True)[:, : K - self.byzantine]

        # y_k = 1 / (K - f) sum over the K - f nearest j of x_j; some columns at a time, for both steps
        mixed = (torch.stack([rows_Kd[nearest_n].mean(0) for nearest_n in nearest_Kn]) for rows_Kd in blocks(rows_KD))
        return torch.cat([TrimmedMean(self.byzantine)(mixed_Kd, weights_K) for mixed_Kd in mixed])
