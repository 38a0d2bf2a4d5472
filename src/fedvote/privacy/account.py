"""What tallies of blurred votes give away about one client: epsilon and delta, by the library dp-accounting.

A vote of voter k is +1 with a probability p_k that its data decide, between two ends. A tally of K votes is a sum of
such coins, Poisson binomial (Chen et al., 2022). Two datasets that differ in one client differ in one coin. The worst
case is that this coin goes from one end to the other, in every weight and every round, while all other coins lie at the
ends: a divergence is quasi-convex in each coin. Three cases are tried: all other coins at the lower end, half at each
end, and all at the upper end. No worse mixture has been found.

The Rényi divergence of one tally is summed over all its values. Divergences of all weights and rounds add up (Mironov,
2017), and the library turns their sum into epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.special import logsumexp
from scipy.stats import binom

Ends = tuple[float, float]
Numbers = npt.NDArray[np.float64]
ORDERS: Numbers = np.concatenate(
    [1 + np.geomspace(0.001, 1, 40), np.linspace(2.1, 10, 60), np.geomspace(10.5, 2000, 80)]
)


def epsilon(tallies: Mapping[int, int], ends: Ends, delta: float) -> float:
    """Epsilon of all tallies together; `tallies`: voters -> number of tallies (weights times rounds) with so many."""
    total = sum(count * divergences(voters, ends) for voters, count in tallies.items())
    return float(compute_epsilon(ORDERS, total, delta)[0])


@lru_cache(maxsize=256)
def divergences(voters: int, ends: Ends) -> Numbers:
    """The Rényi divergence of one tally of each order, for the worst of the databases that are tried."""
    tried = [_divergences(voters - 1 - upper, upper, ends) for upper in {0, (voters - 1) // 2, voters - 1}]
    worst: Numbers = np.max(tried, axis=0)
    return worst


def _divergences(lower: int, upper: int, ends: Ends) -> Numbers:
    others = log_poisson_binomial(lower, upper, ends)
    low, high = (_log_convolve(others, np.log([1 - end, end])) for end in ends)

    # D_a(P || Q) = log(sum of P^a Q^(1 - a)) / (a - 1), the larger of both directions
    both = [logsumexp(np.outer(ORDERS, p) + np.outer(1 - ORDERS, q), axis=1) for p, q in ((low, high), (high, low))]
    larger: Numbers = np.max(both, axis=0) / (ORDERS - 1)
    return larger


def log_poisson_binomial(lower: int, upper: int, ends: Ends) -> Numbers:
    """The logarithms of the chances of each number of +1, among so many coins at the lower end and at the upper."""
    first, second = (
        binom.logpmf(np.arange(coins + 1), coins, end) for coins, end in zip((lower, upper), ends, strict=True)
    )
    return _log_convolve(first, second)


def _log_convolve(one: Numbers, other: Numbers) -> Numbers:
    """The logarithm of the convolution of two vectors, given by their logarithms."""
    total = np.full(len(one) + len(other) - 1, -np.inf)
    for place, value in enumerate(other):
        part = total[place : place + len(one)]
        np.logaddexp(part, one + value, out=part)
    return total
