"""Residual blocks for voted weights. He et al., 2016, without any parameter but convolutions.

The scale of a branch matters: a convolution of +-1 weights with fan-in n makes outputs n times as large in variance, so
the widest layers would drown the shortcut. Each branch therefore ends in a batch norm without parameters, which divides
by the outputs' own deviation, fan-in included. So a block is the same function whether its weights are votes, soft
votes or floats of any size, and no constant has to be chosen.

Shortcuts have no weights: where a block halves the image and widens it, they are an average pool and zero channels.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, affine=False, track_running_stats=False)


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


class Shortcut(nn.Module):
    """The input itself, or its average over 2 x 2 pixels, with channels of zeros behind its own."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.missing, self.stride = outputs - inputs, stride

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            odd = any(side % self.stride for side in x.shape[-2:])  # the branch rounds up
            x = F.avg_pool2d(x, self.stride, ceil_mode=odd)
        return F.pad(x, (0, 0, 0, 0, 0, self.missing)) if self.missing else x


class Block(nn.Module):
    """Two convolutions beside a shortcut: relu(x + branch(x))."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.branch = nn.Sequential(
            conv3x3(inputs, outputs, stride), norm(outputs), nn.ReLU(), conv3x3(outputs, outputs), norm(outputs)
        )
        self.shortcut = Shortcut(inputs, outputs, stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu(self.shortcut(x) + self.branch(x))
        return y


class PreactivationBlock(nn.Module):
    """Norm and ReLU come before each convolution, and the sum has neither: x + branch(relu(norm(x)))."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.branch = nn.Sequential(
            norm(inputs), nn.ReLU(), conv3x3(inputs, outputs, stride),
            norm(outputs), nn.ReLU(), conv3x3(outputs, outputs), norm(outputs),
        )  # fmt: skip
        self.shortcut = Shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.shortcut(x) + self.branch(x)
        return y


def stages(kind: type[Block | PreactivationBlock], widths: tuple[int, ...], blocks: int) -> list[nn.Module]:
    """So many blocks of each width; each width but the first begins by halving the image."""
    layers: list[nn.Module] = []
    before = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            layers.append(kind(before, width, stride=2 if stage and not block else 1))
            before = width
    return layers
