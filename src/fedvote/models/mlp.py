"""A flat network for inputs of any shape: two hidden layers of 128 units."""

from __future__ import annotations

import math

from torch import nn

from fedvote.models.blocks import linear


def mlp(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        *linear(math.prod(shape), 128),
        *linear(128, 128),
        nn.Linear(128, classes, bias=False),
    )
