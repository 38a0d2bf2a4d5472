"""Small pictures, and every way to augment them."""

from __future__ import annotations

import torch

from fedvote.core import Examples
from fedvote.data.augment import Crop, Cutout, Flip, Noise, Rotation
from fedvote.randomness import Key

ALL = [Flip(), Crop(2), Cutout(4), Rotation(15.0), Noise(0.1)]


def images(n: int = 60, size: int = 8) -> Examples:
    x = torch.randint(0, 256, (n, 3, size, size), generator=Key(0).torch("images"), dtype=torch.uint8)
    return Examples(x, torch.arange(n) % 3, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
