"""The memory layout of images that tensor cores prefer."""

from __future__ import annotations

from torch import Tensor


def channels_last(x: Tensor) -> Tensor:
    """Images (..., channels, height, width), contiguous by pixel."""
    x = x.movedim(-3, -1).contiguous()
    *front, height, width, channels = x.shape
    # explicit strides: with one channel, torch could take either layout
    strides = (*x.stride()[:-3], 1, width * channels, channels)
    return x.as_strided((*front, channels, height, width), strides)
