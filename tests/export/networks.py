"""Networks to export: with random votes, or floats, calibrated on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fedvote.core import Weights
from fedvote.models import make_model
from fedvote.models.residual import Block, PreactivationBlock, conv3x3, norm, stages
from fedvote.network.deployed import Deployed
from fedvote.network.network import Network
from fedvote.quantize import BINARY, TERNARY

IMAGE = (3, 16, 16)
VALUES = {"binary": BINARY, "ternary": TERNARY}


class Residual(nn.Module):
    """A network of a user's own: a branch, a layer kept float in the middle, and a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.branch = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.BatchNorm2d(8))
        self.last = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y: Tensor = self.last(torch.relu(x + self.branch(x)).mean((2, 3)))
        return y


def blocks(channels: int = 3, classes: int = 4) -> nn.Module:
    """The blocks of ResNet-20 and of WRN-20-4, narrow."""
    return nn.Sequential(
        conv3x3(channels, 8), norm(8), nn.ReLU(), Block(8, 8),
        *stages(PreactivationBlock, (8, 16), blocks=1), norm(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes, bias=False),
    )  # fmt: skip


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(20, 33), nn.BatchNorm1d(33), nn.ReLU(), nn.Linear(33, 17), nn.ReLU(), nn.Linear(17, 4)
    )


def conv1d() -> nn.Module:
    layers = nn.Conv1d(2, 6, 5, stride=2, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(6 * 6, 4))


def inputs(shape: Sequence[int], dtype: torch.dtype, count: int = 60) -> Tensor:
    lots = torch.Generator().manual_seed(1)
    if dtype == torch.uint8:
        return torch.randint(0, 256, (count, *shape), dtype=dtype, generator=lots)
    return torch.randn((count, *shape), generator=lots)


def deployed(module: nn.Module, votes: str, shape: Sequence[int], dtype: torch.dtype = torch.uint8) -> Deployed:
    """A network with random votes, or floats, calibrated on random inputs."""
    network = Network(module)
    voted_D = network.start.voted
    if votes in VALUES:
        lots = torch.Generator().manual_seed(2)
        voted_D = torch.tensor(VALUES[votes]).float()[torch.randint(len(VALUES[votes]), (network.D,), generator=lots)]
    weights = Weights(voted_D, network.start.floats)
    x, scaling = inputs(shape, dtype), ((), ())
    statistics = network.calibrate(weights, x / 255 if dtype == torch.uint8 else x)
    return Deployed(network.module(weights, statistics), *scaling, list("abcd"), shape, dtype).eval()


CASES: dict[str, tuple[Callable[[], nn.Module], Sequence[int], torch.dtype]] = {
    "lenet5": (lambda: make_model("lenet5", (1, 8, 8), 4), (1, 8, 8), torch.uint8),
    "digits-cnn": (lambda: make_model("digits-cnn", (1, 8, 8), 4), (1, 8, 8), torch.float32),
    "residual": (Residual, IMAGE, torch.uint8),
    "blocks": (blocks, IMAGE, torch.uint8),
    "mlp": (mlp, (20,), torch.float32),
    "conv1d": (conv1d, (2, 15), torch.float32),
}
TRIED = [
    *((case, "binary") for case in CASES),
    *((case, "ternary") for case in ("residual", "conv1d")),
    ("residual", "float"),
]
