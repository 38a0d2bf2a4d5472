"""VGG-7 as in the authors' code: 3x3 convolutions of 128, 128, 256, 256, 512, 512 filters, 1024 units."""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import conv, image_shape, linear


def vgg7(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, pixels = image_shape(shape, halvings=3, name="vgg7")
    layers: list[nn.Module] = []
    for width in (128, 256, 512):
        layers += [*conv(channels, width, 3), *conv(width, width, 3, pool=True)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), *linear(512 * pixels, 1024), nn.Linear(1024, classes, bias=False))
