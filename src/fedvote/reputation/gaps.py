"""Gaps above a camp on a line: how wide they are, relative to the spread of the majority's camp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

FEWEST = 3  # ballots in the smallest camp: the spread of fewer is meaningless
FAR = 2.5  # gaps above the lowest majority, where a ballot is left out even if its neighbours are close

Gap = tuple[float, Tensor]
"""The width of a gap in units of the width needed, so that 1 is wide enough; and the ballots of the camp below it."""


@dataclass(frozen=True)
class Line:
    """The positions of ballots on a line. Only ballots at its upper end can be left out."""

    places_K: Tensor
    noise: float  # standard deviation of a position, at least


def widest_gap(line: Line, heads_K: Tensor, half: float, need: float) -> Gap:
    """The widest gap above a camp with more than half of the heads, or the place far above the lowest majority.

    `need`: the width needed, in spreads of a large camp.
    """
    order_K = line.places_K.argsort()
    places_K, sorted_K = line.places_K[order_K] - line.places_K.mean(), heads_K[order_K]

    # the n lowest ballots are the camp, for n = 1 .. K - 1
    n_n = torch.arange(1, len(order_K), dtype=torch.float64)
    spread_n = spreads(places_K)[:-1].clamp_min(line.noise)
    inside_n, outside_n = running_sum(sorted_K)[:-1], running_sum(sorted_K.flip(0)).flip(0)[1:]
    allowed_n = (n_n >= FEWEST) & (inside_n > half)
    if not bool(allowed_n.any()):
        return 0.0, order_K

    # gap (1 + 2 / (n - 2)) spread: wider beside a small camp, whose ballots may be close by chance; about as much as
    # Student's t is wider than a normal distribution
    # times the mean head outside: less against clients that were left out before
    few_n, head_n = 1 + 2 / (n_n - 2).clamp_min(1), outside_n / (len(order_K) - n_n)
    needed_n = need * few_n * spread_n
    width_n = torch.where(allowed_n, places_K.diff() / (needed_n * head_n), 0.0)
    cut = int(width_n.argmax())
    if width_n[cut] <= 1:  # a ladder of attackers has no gap
        lowest = int(allowed_n.nonzero()[0])
        width_n = (places_K[1:] - places_K[lowest]) / (FAR * needed_n[lowest])
        far_n = (width_n > 1).nonzero()
        cut = int(far_n[0]) if len(far_n) else cut
    return float(width_n[cut]), order_K[: cut + 1]


def spreads(places_K: Tensor) -> Tensor:
    """(K,) the standard deviation of the first n positions, in ascending order, about their median, for n = 1 .. K.

    Only positions from the median on count. Nobody is left out for too little work, so an attacker far below all others
    would risk nothing, and would make every gap above the honest ballots look narrow.
    """
    n_K = torch.arange(1, len(places_K) + 1)
    low_K = n_K // 2
    median_K = (places_K[(n_K - 1) // 2] + places_K[low_K]) / 2
    sums = (running_sum(pad(x_K, (1, 0))) for x_K in (places_K, places_K.square()))
    sum_K, square_K = (each[n_K] - each[low_K] for each in sums)

    # sum (x - median)^2 / count
    total_K = square_K - 2 * median_K * sum_K + (n_K - low_K) * median_K.square()
    return (total_K / (n_K - low_K)).clamp_min(0).sqrt()


def running_sum(x: Tensor) -> Tensor:
    """The sums of the first 1, 2, ... values of the last axis; on the CPU, where their order is fixed."""
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1))
