"""A small network for 8x8 digits: two 3x3 convolutions of 16 and 32 filters, 64 units."""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import conv, image_shape, linear


def digits_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, pixels = image_shape(shape, halvings=2, name="digits-cnn")
    return nn.Sequential(
        *conv(channels, 16, 3, pool=True),
        *conv(16, 32, 3, pool=True),
        nn.Flatten(),
        *linear(32 * pixels, 64),
        nn.Linear(64, classes, bias=False),
    )
