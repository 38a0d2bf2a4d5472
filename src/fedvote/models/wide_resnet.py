"""WRN-20-4: nine wide pre-activation blocks of 64, 128 and 256 filters; 4.3 million weights.

Zagoruyko and Komodakis, 2016; the network of McDonnell, 2018 (arXiv 1802.08530), for one-bit weights.
"""

from __future__ import annotations

from torch import nn

from fedvote.models.blocks import image_shape
from fedvote.models.residual import PreactivationBlock, conv3x3, norm, stages


def wrn20_4(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, _ = image_shape(shape, halvings=2, name="wrn20-4")
    return nn.Sequential(
        conv3x3(channels, 64), norm(64),
        *stages(PreactivationBlock, (64, 128, 256), blocks=3),
        norm(256), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, classes, bias=False),
    )  # fmt: skip
