"""How far a mean of random draws may lie from its expectation."""

from __future__ import annotations

from torch import Tensor


def assert_within_5_sigma(mean: Tensor, expected: Tensor, variance: Tensor, draws: int) -> None:
    """Of `draws` draws with this variance each; a right answer fails less than once in a million weights."""
    sigma = (variance / draws).sqrt()
    worst = ((mean - expected).abs() - 5 * sigma).max()
    assert worst <= 1e-6, f"off by {worst:.2e} more than 5 sigma"
