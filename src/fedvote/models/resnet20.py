"""ResNet-20 for images of about 32 x 32: nine residual blocks of 16, 32 and 64 filters; 0.27 million weights."""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import image_shape
from fedvote.models.residual import Block, conv3x3, norm, stages


def resnet20(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, _ = image_shape(shape, halvings=2, name="resnet20")
    return nn.Sequential(
        conv3x3(channels, 16), norm(16), nn.ReLU(),
        *stages(Block, (16, 32, 64), blocks=3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes, bias=False),
    )  # fmt: skip
