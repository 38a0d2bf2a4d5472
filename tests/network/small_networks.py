"""Networks that train in milliseconds, and points and tokens of three classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fedvote
from fedvote.core import Dataset
from fedvote.method import Method


def points(tokens: bool = False) -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    x = rng.integers(0, 4, (240, 6)) + 4 * y[:, None] if tokens else 2 * np.eye(6)[y] + rng.normal(size=(240, 6))
    return fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:])


def mlp(outputs: int = 3) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, outputs))


def trained(network: nn.Module, data: Dataset, method: Method, **options: Any) -> tuple[nn.Module, float]:
    run = fedvote.simulate(network, data, method, clients=2, rounds=3, steps=10, batch=20, device="cpu", **options)
    *_, last = run
    return run.deployed(last).network, next(last.record[name] for name in ("accuracy", "r2") if name in last.record)


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(12, 16, bias=False), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(F.one_hot(x.long(), 12).float().mean(1)).relu())  # type: ignore[no-any-return]


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.mul_(0.5))  # type: ignore[no-any-return]
