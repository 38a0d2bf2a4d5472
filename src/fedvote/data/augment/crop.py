"""Crop: an image is shifted by a few pixels each way; at the edge it is reflected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.data.augment.augmentation import Augmentation, check_image, pick_pixels
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Crop(Augmentation):
    pixels: int = 4  # the farthest shift in each direction; 4 suits images of 32 x 32
    draws: ClassVar[int] = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        # whole numbers from -pixels to pixels, all equally likely
        shift = (u * (2 * self.pixels + 1)).long() - self.pixels
        height, width = x.shape[-2:]
        return pick_pixels(x, _reflected(shift[:, :1], height), _reflected(shift[:, 1:], width))

    def check(self, shape: Sequence[int]) -> None:
        check_image(self, shape)
        if min(shape[1:]) < 2:
            raise ConfigError(f"Crop shifts images of 2 x 2 pixels or more, but the inputs have shape {tuple(shape)}")
        if not 0 < self.pixels < min(shape[1:]):
            raise ConfigError(f"pixels is {self.pixels}, expected 1 to {min(shape[1:]) - 1} for a crop of this image")


def _reflected(shift: Tensor, size: int) -> Tensor:
    """(n, size) the places 0 to size - 1, shifted; those beyond an edge are reflected at it."""
    place = (torch.arange(size, device=shift.device) + shift).abs()
    last = size - 1
    return last - (last - place).abs()
