"""Regression: how far diabetes has progressed after a year, from ten measurements of 442 patients.

fedvote run quickstart --set data=examples/regression.py:diabetes --set model=examples/regression.py:network \
    --set local.batch=32 --set method.train_float=true

The last layer trains as well (`train_float`): a frozen one would fix the mean of all predictions at random.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes  # type: ignore[import-untyped, unused-ignore]
from torch import nn

import fedvote

TRAINING = 342  # patients; the other 100 are the test set


def diabetes() -> fedvote.Dataset:
    x, y = load_diabetes(return_X_y=True, scaled=False)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    y = (y - y[:TRAINING].mean()) / y[:TRAINING].std()  # a network's first outputs are near 0 and of size 1
    return fedvote.from_arrays(
        x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:],
        task="regression", classes=["progression"], standardise=True, name="diabetes",
    )  # fmt: skip


def network(shape: tuple[int, ...], targets: int) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, targets))


if __name__ == "__main__":
    data = diabetes()
    method = fedvote.FedVote(train_float=True)
    for snapshot in fedvote.simulate(network(data.shape, 1), data, method, clients=5, rounds=15, steps=20, batch=32):
        print(f"round {snapshot.round}: r2 {snapshot.record['r2']:.3f}")
