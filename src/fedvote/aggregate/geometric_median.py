"""The point with the smallest weighted sum of distances to all rows: RFA, Pillutla et al., 2022.

    argmin_v sum_k w_k ||x_k - v||, by the smoothed Weiszfeld iteration (their Algorithm 2).

The paper's code starts from the mean, ByzFL from 0; all starts converge to the same point. But a huge row moves the
mean far away, and each iteration returns only by a factor of about f / (K - f): the usual three or four are too few. A
start at a row barely moves, and the coordinate-wise median of few weights often is a row. So this iteration starts
from the coordinate-wise median after one step of centred clipping, with the median distance as the radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from fedvote.aggregate.aggregate import Aggregate
from fedvote.aggregate.blocks import combine, distances
from fedvote.aggregate.centred_clipping import clipped_mean
from fedvote.aggregate.median import median
from fedvote.errors import ConfigError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class GeometricMedian(Aggregate):
    iterations: int = 100  # at most
    tolerance: float = 1e-6  # stop after a step this small, relative to the median distance to the rows
    smoothing: float = 1e-6  # nu: a row closer than this pulls no harder

    def __post_init__(self) -> None:
        check_at_least(self, iterations=1)
        if not 0 <= self.tolerance < 1:
            raise ConfigError(f"tolerance is {self.tolerance}, expected a number from 0 to below 1")
        if not 0 < self.smoothing < math.inf:
            raise ConfigError(f"smoothing is {self.smoothing}, expected a finite number above 0; the paper has 1e-6")

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        centre_D = self._start(rows_KD, weights_K)
        for _ in range(self.iterations):
            # beta_k = w_k / max(nu, ||x_k - v||)
            distance_K = distances(rows_KD, centre_D)
            beta_K = weights_K.double() / distance_K.clamp(min=self.smoothing)

            # v = sum_k beta_k x_k / sum_k beta_k
            last_D, centre_D = centre_D, combine(beta_K / beta_K.sum(), rows_KD)
            if (centre_D - last_D).norm() <= self.tolerance * distance_K.median():
                break
        return centre_D.to(rows_KD.dtype)

    def _start(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        middle_D = median(rows_KD).double()
        radius = max(float(distances(rows_KD, middle_D).median()), self.smoothing)
        return clipped_mean(rows_KD, weights_K, middle_D, radius)
