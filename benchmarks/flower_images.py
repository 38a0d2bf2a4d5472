"""Data for benchmarks/flower.py: scikit-learn's digits, enlarged to the 32 x 32 x 3 that VGG-7 takes."""

from __future__ import annotations

import numpy as np

import fedvote
from fedvote.data import load


def images() -> tuple[np.ndarray, np.ndarray]:
    """What every client has."""
    data = load("digits").train
    return np.kron(data.x.numpy(), np.ones((1, 3, 4, 4), np.uint8)), data.y.numpy()


def dataset() -> fedvote.Dataset:
    """What the server has."""
    x, y = images()
    return fedvote.from_arrays(x[:64], y[:64], x[64:96], y[64:96], classes=list("0123456789"))
