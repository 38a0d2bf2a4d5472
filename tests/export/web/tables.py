"""A table to make a page of."""

from __future__ import annotations

import numpy as np

from fedvote import from_arrays
from fedvote.core import Dataset


def table(count: int = 200) -> Dataset:
    """Twenty columns: the first from 0 to 10 in whole numbers, the others around 5."""
    rng = np.random.default_rng(0)
    x = rng.normal(5, 1, (count, 20)).astype(np.float32)
    x[:, 0] = rng.integers(0, 11, count)
    y = rng.integers(0, 4, count)
    return from_arrays(x[10:], y[10:], x[:10], y[:10], classes=["<b>", "b", "c", "d"])
