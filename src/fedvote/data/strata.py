"""Groups of training examples by their targets, for partitioners and for pictures of who has which examples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedvote.core import Dataset

BINS = 10  # groups of a regression's targets


def strata(data: Dataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each training example, from 0, and the names of the groups.

    Classification: the classes. Regression: tenths of the examples by their first target. Multi-label: the first label
    that an example has, or none.
    """
    y = data.train.y.cpu().numpy()
    if data.task == "classification":
        return y, data.classes
    if data.task == "multi-label":
        first = np.where(y.any(1), (y > 0).argmax(1), y.shape[1])
        return first, (*data.classes, "none")
    edges = np.unique(np.quantile(y[:, 0], np.linspace(0, 1, BINS + 1)[1:-1]))
    names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
    return np.searchsorted(edges, y[:, 0], side="right"), (f"< {edges[0]:.3g}", *names, f">= {edges[-1]:.3g}")
