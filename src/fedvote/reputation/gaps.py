"""Gaps between camps on a line: how wide they are, relative to the spread of the majority's camp."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

FEWEST = 3  # ballots in the smallest camp: the spread of fewer is meaningless
FEWEST_ALIKE = 7  # the same where agreement counts: of fewer honest clients some may have the same class by chance
STRANGE = 2.0  # spreads by which the ballots beyond a gap agree less with a large camp than its own do
FAR = 2.5  # gaps above the lowest majority, where a ballot is left out even if its neighbours are close

Gap = tuple[float, Tensor]
"""The width of a gap in units of the width needed, so that 1 is wide enough; and the ballots of the camp beside it."""


@dataclass(frozen=True)
class Line:
    """The positions of ballots on a line."""

    places_K: Tensor
    noise: float  # standard deviation of a position, at least
    one_sided: bool = False  # whether only ballots at the upper end can be left out
    alike_KK: Tensor | None = None  # how much ballots agree: if given, only those that agree less can be left out


def widest_gap(line: Line, heads_K: Tensor, half: float, need: float) -> Gap:
    """The widest gap beside a camp with more than half of the heads; `need`: spreads of a large camp."""
    above = _above(line, heads_K, half, need)
    below = above if line.one_sided else _above(replace(line, places_K=-line.places_K), heads_K, half, need)
    return max(above, below, key=lambda gap: gap[0])


def _above(line: Line, heads_K: Tensor, half: float, need: float) -> Gap:
    """The widest gap above a camp; on a line with one side, also the place far above the lowest majority."""
    order_K, tail = line.places_K.argsort(), line.one_sided
    places_K, sorted_K = line.places_K[order_K] - line.places_K.mean(), heads_K[order_K]

    # the n lowest ballots are the camp, for n = 1 .. K - 1
    n_n = torch.arange(1, len(order_K), dtype=torch.float64)
    spread_n = spreads(places_K)[:-1].clamp_min(line.noise)
    inside_n, outside_n = running_sum(sorted_K)[:-1], running_sum(sorted_K.flip(0)).flip(0)[1:]
    allowed_n = (n_n >= (FEWEST if line.alike_KK is None else FEWEST_ALIKE)) & (inside_n > half)
    if not bool(allowed_n.any()):
        return 0.0, order_K

    # gap (1 + 2 / (n - 2))^2 spread: wider beside a small camp, whose ballots may be close by chance; about as much as
    # Student's t is wider than a normal distribution. The spread of work is bounded by its noise, so no square there
    # times the mean head outside: less against clients that were left out before
    few_n, head_n = (1 + 2 / (n_n - 2).clamp_min(1)) ** (1 if tail else 2), outside_n / (len(order_K) - n_n)
    needed_n = need * few_n * spread_n
    width_n = torch.where(allowed_n, places_K.diff() / (needed_n * head_n), 0.0)
    if line.alike_KK is not None:
        # squared: in late rounds honest clients agree little, and attackers are known
        strange_n = STRANGE * few_n * head_n.square()
        width_n = width_n.minimum(estranged(line.alike_KK[order_K][:, order_K]) / strange_n)
    cut = int(width_n.argmax())
    if tail and width_n[cut] <= 1:  # a ladder of attackers has no gap
        lowest = int(allowed_n.nonzero()[0])
        width_n = (places_K[1:] - places_K[lowest]) / (FAR * needed_n[lowest])
        far_n = (width_n > 1).nonzero()
        cut = int(far_n[0]) if len(far_n) else cut
    return float(width_n[cut]), order_K[: cut + 1]


def estranged(alike_KK: Tensor) -> Tensor:
    """(K - 1,) by how many spreads the ballots after the first n agree less with these than these do with each other.

    Clients with much of one class form a camp as well, but they agree with all others as much as these agree.
    """
    K = len(alike_KK)
    n_n = torch.arange(1, K, dtype=torch.float64)
    inside_Kn = torch.arange(K)[:, None] < n_n

    # a_i: mean agreement of ballot i with those of the first n that are not itself
    sum_Kn = running_sum(alike_KK)[:, :-1] - inside_Kn * alike_KK.diagonal()[:, None]
    mean_Kn = sum_Kn / (n_n - inside_Kn.double()).clamp_min(1)
    among_n, of_others_n = (mean_Kn * inside_Kn).sum(0) / n_n, (mean_Kn * ~inside_Kn).sum(0) / (K - n_n)
    square_n = ((mean_Kn - among_n).square() * inside_Kn).sum(0) / (n_n - 1).clamp_min(1)
    return (among_n - of_others_n) / square_n.sqrt().clamp_min(1e-12)


def spreads(places_K: Tensor) -> Tensor:
    """(K,) the standard deviation of the first n positions, for n = 1 .. K."""
    n_K = torch.arange(1, len(places_K) + 1, dtype=places_K.dtype)
    sum_K, square_K = running_sum(places_K), running_sum(places_K.square())

    # (sum x^2 - (sum x)^2 / n) / (n - 1)
    return ((square_K - sum_K.square() / n_K) / (n_K - 1).clamp_min(1)).clamp_min(0).sqrt()


def running_sum(x: Tensor) -> Tensor:
    """The sums of the first 1, 2, ... values of the last axis; on the CPU, where their order is fixed."""
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1))
