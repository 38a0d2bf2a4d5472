"""Rotation: an image is turned by a small random angle about its centre."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.data.augment.augmentation import Augmentation, check_image
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Rotation(Augmentation):
    """Rotation: an image is turned by a small random angle; pixels from outside are as at the nearest edge."""

    degrees: float = 10.0  # the largest angle, either way

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        angle = (2 * u[:, 0] - 1) * math.radians(self.degrees)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)

        # places count from -1 to 1 along each side: a turn in pixels has to know their ratio
        ratio = x.shape[-2] / x.shape[-1]
        turn = torch.stack([cos, -sin * ratio, zero, sin / ratio, cos, zero], 1).view(-1, 2, 3)
        grid = F.affine_grid(turn, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)

    def check(self, shape: Sequence[int]) -> None:
        check_image(self, shape)
        if not 0 < self.degrees <= 180:
            raise ConfigError(f"degrees is {self.degrees}, expected a number above 0, up to 180")
