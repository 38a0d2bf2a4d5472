"""Networks of many kinds, and what torch itself makes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.core import Weights
from fedvote.network.network import Network
from fedvote.randomness import Key


class Residual(nn.Module):
    """Layers two deep, with a path around them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1, stride=2)
        self.block = nn.Sequential(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(4))
        )
        self.head = nn.ModuleDict({"norm": nn.LayerNorm(4), "out": nn.Linear(4, 3)})

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = (x + self.block(x)).relu().mean((2, 3))
        out: Tensor = self.head["out"](self.head["norm"](x))
        return out


class Tied(nn.Module):
    """An encoder and a decoder with one weight between them."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(5, 5)
        self.decode = nn.Linear(5, 5, bias=False)
        self.decode.weight = self.encode.weight
        self.out = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.decode(self.encode(x).tanh()))
        return out


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]  # of one input
    voted: tuple[str, ...]
    keep_float: tuple[str, ...] | None = None

    def network(self, seed: int = 0) -> Network:
        return Network(self.make(), seed, self.keep_float)


CASES = {
    "linear": Case(lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), (5,), ("0.weight",)),
    "conv1d": Case(
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, dilation=2), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)
        ),
        (2, 7),
        ("0.weight",),
    ),
    "conv2d": Case(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular"),
            nn.BatchNorm2d(4, eps=0.1, affine=False, track_running_stats=False),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, (3, 1), bias=False),
            nn.Flatten(),
            nn.BatchNorm1d(48),
            nn.Linear(48, 3),
        ),
        (1, 8, 8),
        ("0.weight", "4.weight"),
    ),
    "transposed": Case(
        lambda: nn.Sequential(
            nn.ConvTranspose2d(2, 3, 2, stride=2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 3, bias=False)
        ),
        (2, 2, 2),
        ("0.weight",),
    ),
    "residual": Case(Residual, (2, 6, 6), ("stem.weight", "block.0.0.weight")),
    "tied": Case(Tied, (5,), ("encode.weight",)),
    "one layer": Case(lambda: nn.Linear(5, 3), (5,), ("weight",), keep_float=()),
    "nothing float": Case(
        lambda: nn.Sequential(nn.Linear(5, 4, bias=False), nn.BatchNorm1d(4), nn.Linear(4, 3, bias=False)),
        (5,),
        ("0.weight", "2.weight"),
        keep_float=(),
    ),
    "no linear layer": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 2), nn.Flatten()), (1, 4, 4), ("0.weight",)
    ),
}
WITH_NORM = [name for name, case in CASES.items() if any(isinstance(m, _BatchNorm) for m in case.make().modules())]
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_case_with_norm = pytest.mark.parametrize("case", [CASES[name] for name in WITH_NORM], ids=WITH_NORM)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=Key(seed).torch("test"))


def some_weights(network: Network, seed: int = 1) -> Weights:
    return Weights(normal(network.D, seed=seed), normal(network.F, seed=seed + 1000))


def as_torch_runs_it(case: Case, network: Network, weights: Weights) -> nn.Module:
    """The user's own module with these weights, its batch norms without parameters and recording one batch."""
    module = case.make().train()
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            layer.affine, layer.momentum, layer.track_running_stats = False, 1.0, True
            layer.register_parameter("weight", None)
            layer.register_parameter("bias", None)
            layer.register_buffer("running_mean", torch.zeros(layer.num_features))
            layer.register_buffer("running_var", torch.ones(layer.num_features))
            layer.register_buffer("num_batches_tracked", torch.tensor(0))
    with torch.no_grad():
        for slots, flat in ((network.voted, weights.voted), (network.floats, weights.floats)):
            for slot in slots:
                module.get_parameter(slot.name).copy_(flat[slot.start : slot.stop].reshape(slot.shape))
    return module
