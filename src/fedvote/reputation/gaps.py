"""Gaps between camps on a line: how wide they are, relative to the spread of the majority's camp."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FEWEST = 3  # ballots in the smallest camp: the spread of fewer is meaningless
FAR = 2.5  # gaps above the lowest majority, where a ballot is left out even if its neighbours are close

Gap = tuple[float, Tensor]
"""The width of a gap in units of the width needed, so that 1 is wide enough; and the ballots of the camp beside it."""


@dataclass(frozen=True)
class Line:
    """The positions of ballots on a line."""

    places_K: Tensor
    noise: float  # standard deviation of a position, at least
    one_sided: bool = False  # whether only ballots at the upper end can be left out


def widest_gap(line: Line, heads_K: Tensor, half: float, need: float) -> Gap:
    """The widest gap beside a camp with more than half of the heads; `need`: spreads of a large camp."""
    above = _above(line.places_K, line.noise, heads_K, half, need, line.one_sided)
    below = above if line.one_sided else _above(-line.places_K, line.noise, heads_K, half, need, False)
    return max(above, below, key=lambda gap: gap[0])


def _above(all_K: Tensor, noise: float, heads_K: Tensor, half: float, need: float, tail: bool) -> Gap:
    """The widest gap above a camp; with `tail`, also the place far above the lowest majority."""
    order_K = all_K.argsort()
    places_K, sorted_K = all_K[order_K] - all_K.mean(), heads_K[order_K]

    # the n lowest ballots are the camp, for n = 1 .. K - 1
    n_n = torch.arange(1, len(order_K), dtype=torch.float64)
    spread_n = spreads(places_K)[:-1].clamp_min(noise)
    inside_n, outside_n = sorted_K.cumsum(0)[:-1], sorted_K.flip(0).cumsum(0).flip(0)[1:]
    allowed_n = (n_n >= FEWEST) & (inside_n > half)
    if not bool(allowed_n.any()):
        return 0.0, order_K

    # gap (1 + 2 / (n - 2))^2 spread: wider beside a small camp, whose ballots may be close by chance; about as much as
    # Student's t is wider than a normal distribution. The spread of work is bounded by its noise, so no square there
    # times the mean head outside: narrower against clients that were left out before
    needed_n = need * (1 + 2 / (n_n - 2).clamp_min(1)) ** (1 if tail else 2) * spread_n
    width_n = torch.where(allowed_n, places_K.diff() / (needed_n * outside_n / (len(order_K) - n_n)), 0.0)
    cut = int(width_n.argmax())
    if tail and width_n[cut] <= 1:  # a ladder of attackers has no gap
        lowest = int(allowed_n.nonzero()[0])
        width_n = (places_K[1:] - places_K[lowest]) / (FAR * needed_n[lowest])
        far_n = (width_n > 1).nonzero()
        cut = int(far_n[0]) if len(far_n) else cut
    return float(width_n[cut]), order_K[: cut + 1]


def spreads(places_K: Tensor) -> Tensor:
    """(K,) the standard deviation of the first n positions, for n = 1 .. K."""
    n_K = torch.arange(1, len(places_K) + 1, dtype=places_K.dtype)
    sum_K, square_K = places_K.cumsum(0), places_K.square().cumsum(0)

    # (sum x^2 - (sum x)^2 / n) / (n - 1)
    return ((square_K - sum_K.square() / n_K) / (n_K - 1).clamp_min(1)).clamp_min(0).sqrt()
