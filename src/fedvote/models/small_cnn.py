"""The usual small network for cross-device benchmarks: 3x3 convolutions of 32 and 64 filters, a pool, 128 units."""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import image_shape


def small_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    image_shape(shape, halvings=3, name="small-cnn")
    channels, height, width = shape
    pixels = (height // 2 - 2) * (width // 2 - 2)  # two unpadded convolutions cut four pixels a side, the pool halves
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * pixels, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )
