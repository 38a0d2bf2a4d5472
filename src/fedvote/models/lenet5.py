"""LeNet-5 as in the authors' code: two 5x5 convolutions of 32 and 64 filters, 512 units."""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import conv, image_shape, linear


def lenet5(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, pixels = image_shape(shape, halvings=2, name="lenet5")
    return nn.Sequential(
        *conv(channels, 32, 5, pool=True),
        *conv(32, 64, 5, pool=True),
        nn.Flatten(),
        *linear(64 * pixels, 512),
        nn.Linear(512, classes, bias=False),
    )
