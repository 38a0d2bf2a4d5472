"""Gaps above a camp on a line: how wide they are, relative to the spread of the majority's camp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

FEWEST = 3  # ballots in the smallest camp: the spread of fewer is meaningless
FAR = 2.5
"""A ballot this many required gaps above the lowest majority is left out, even without a gap beside it."""


@dataclass(frozen=True, eq=False)
class Line:
    """The positions of ballots on a line. Only ballots at its upper end can be left out."""

    places_K: Tensor
    noise: float  # standard deviation of a position, at least
    cosines: Callable[[], Tensor] | None = None  # (K, K), if positions are mean cosines with all other ballots

    def conspired(self, camp: Tensor) -> bool:
        """Whether the ballots outside of the camp agree with each other more than with the camp.

        One attacker can side with an honest client, which then seems to agree with everybody more than others do.
        """
        if self.cosines is None:
            return True
        alike_KK, K = self.cosines(), len(self.places_K)
        outside = torch.ones(K, dtype=torch.bool).index_fill(0, camp, False).nonzero()[:, 0]
        if len(outside) < 2:
            return False
        among_nn = alike_KK[outside][:, outside]
        within = (among_nn.sum() - among_nn.trace()) / (len(outside) * (len(outside) - 1))
        return bool(within > alike_KK[outside][:, camp].mean())


Gap = tuple[float, Line | None, Tensor]
"""The width of a gap in units of the width needed, so that 1 is wide enough; its line; and the ballots below it."""


def widest_gap(lines: Sequence[Line], heads_K: Tensor, half: float, need: float) -> Gap:
    """The widest gap on any line above a camp with more than half of the heads; or far above the lowest such camp.

    All lines have the same ballots. `need`: the width needed, in spreads of a large camp.
    """
    K = len(heads_K)
    if K <= FEWEST:
        return 0.0, None, torch.arange(K)
    order_LK = torch.stack([line.places_K for line in lines]).argsort()
    places_LK = torch.stack([line.places_K - line.places_K.mean() for line in lines]).gather(1, order_LK)
    noise_L1 = torch.tensor([[line.noise] for line in lines], dtype=torch.float64)

    # the n lowest ballots are the camp, for n = 1 .. K - 1
    n_n, sorted_LK = torch.arange(1, K, dtype=torch.float64), heads_K[order_LK]
    spread_Ln = spreads(places_LK)[:, :-1].maximum(noise_L1)
    inside_Ln, outside_Ln = running_sum(sorted_LK)[:, :-1], running_sum(sorted_LK.flip(1)).flip(1)[:, 1:]
    allowed_Ln = (n_n >= FEWEST) & (inside_Ln > half)

    # gap (1 + 2 / (n - 2)) spread: wider beside a small camp, whose ballots may be close by chance; about as much as
    # Student's t is wider than a normal distribution
    # times the mean head outside, at most 1: less against clients that were left out before
    few_n, head_Ln = 1 + 2 / (n_n - 2).clamp_min(1), (outside_Ln / (K - n_n)).clamp_max(1)
    needed_Ln = need * few_n * spread_Ln
    width_Ln = torch.where(allowed_Ln, places_LK.diff() / (needed_Ln * head_Ln), 0.0)
    gap_L, cut_L = width_Ln.max(1)

    # a ladder of attackers has no gap
    lowest_L1 = allowed_Ln.byte().argmax(1, keepdim=True)
    above_Ln = (places_LK[:, 1:] - places_LK.gather(1, lowest_L1)) / (FAR * needed_Ln.gather(1, lowest_L1))
    far_Ln = (above_Ln > 1) & allowed_Ln.any(1, keepdim=True)
    first_L = far_Ln.byte().argmax(1)
    ladder_L = (gap_L <= 1) & far_Ln.any(1)
    gap_L = torch.where(ladder_L, above_Ln.gather(1, first_L[:, None])[:, 0], gap_L)
    line = int(gap_L.argmax())
    cut = int(first_L[line] if ladder_L[line] else cut_L[line])
    return float(gap_L[line]), lines[line], order_LK[line, : cut + 1]


def spreads(places_LK: Tensor) -> Tensor:
    """(L, K) the standard deviation of the first n positions, in ascending order, about their median, for n = 1 .. K.

    Only positions from the median on count. Nobody is left out for too little work, so an attacker far below all others
    would risk nothing, and would make every gap above the honest ballots look narrow.
    """
    n_K = torch.arange(1, places_LK.shape[1] + 1)
    low_K = n_K // 2
    median_LK = (places_LK[:, (n_K - 1) // 2] + places_LK[:, low_K]) / 2
    sums = (running_sum(pad(x_LK, (1, 0))) for x_LK in (places_LK, places_LK.square()))
    sum_LK, square_LK = (each[:, n_K] - each[:, low_K] for each in sums)

    # sum (x - median)^2 / count
    total_LK = square_LK - 2 * median_LK * sum_LK + (n_K - low_K) * median_LK.square()
    return (total_LK / (n_K - low_K)).clamp_min(0).sqrt()


def running_sum(x: Tensor) -> Tensor:
    """The sums of the first 1, 2, ... values of the last axis; on the CPU, where their order is fixed."""
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1))
