"""The building blocks of the paper's networks: a layer without bias, batch norm, ReLU and an optional max pool."""

from __future__ import annotations

from torch import nn

from fedvote.errors import ModelError


def conv(inputs: int, outputs: int, kernel: int, pool: bool = False) -> list[nn.Module]:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs, affine=False, track_running_stats=False),
        nn.ReLU(),
    ]
    return [*layers, nn.MaxPool2d(2)] if pool else layers


def linear(inputs: int, outputs: int) -> list[nn.Module]:
    return [
        nn.Linear(inputs, outputs, bias=False),
        nn.BatchNorm1d(outputs, affine=False, track_running_stats=False),
        nn.ReLU(),
    ]


def image_shape(shape: tuple[int, ...], halvings: int, name: str) -> tuple[int, int]:
    """Channels of an image, and its number of pixels after this many 2x2 pools."""
    if len(shape) != 3 or min(shape[1:]) < 2**halvings:
        raise ModelError(
            f"{name} takes images (channels, height, width) of at least {2**halvings} pixels a side, "
            f"but the inputs have shape {shape}; choose another model"
        )
    channels, height, width = shape
    return channels, (height >> halvings) * (width >> halvings)
