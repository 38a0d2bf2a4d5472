"""What clients get follows the alpha that is asked for, by the moments of the Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedvote.core import Dataset
from fedvote.data.partition import Dirichlet, Uneven
from fedvote.data.show import class_counts
from fedvote.randomness import Key

Toy = Callable[..., Dataset]


@pytest.mark.parametrize(("alpha", "largest"), [(0.1, 0.54), (0.5, 0.36)])
def test_the_largest_class_of_a_client_is_as_large_as_the_file_says(alpha: float, largest: float, toy: Toy) -> None:
    """With 31 clients and ten even classes; half of alpha, or twice as much, is off by 0.05 and more."""
    data = toy(np.arange(9300) % 10, 10)
    shares = []
    for seed in range(8):
        counts = class_counts(data, Dirichlet(alpha).split(data, 31, Key(seed).numpy("partition")))
        shares.append((counts.max(1) / counts.sum(1)).mean())
    assert np.mean(shares) == pytest.approx(largest, abs=0.025)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 2.0])
def test_shares_of_a_class_have_the_second_moment_of_a_dirichlet(alpha: float, toy: Toy) -> None:
    """E sum_n q_n^2 = (alpha + 1) / (N alpha + 1), of N clients."""
    N, classes = 10, 200
    data = toy(np.arange(400 * classes) % classes, classes)
    counts = class_counts(data, Uneven(alpha, min_samples=0).split(data, N, Key(0).numpy("partition")))
    found = ((counts / counts.sum(0)) ** 2).sum(0).mean()
    assert found == pytest.approx((alpha + 1) / (N * alpha + 1), rel=0.1)
