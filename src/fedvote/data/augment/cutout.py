"""Cutout: a square of every image becomes zero, the mean colour of standardised images. DeVries and Taylor, 2017."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.data.augment.augmentation import Augmentation, check_image
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Cutout(Augmentation):
    """Cutout: a square of every image becomes zero; part of it may lie outside."""

    pixels: int = 16  # a side of the square; 16 suits images of 32 x 32
    draws: ClassVar[int] = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        rows, columns = self._inside(u[:, :1], height), self._inside(u[:, 1:], width)
        return x.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0.0)

    def _inside(self, u: Tensor, size: int) -> Tensor:
        """(n, size) whether a place is at most half a side away from a centre that may be at any place."""
        first = (u * size).long() - self.pixels // 2
        place = torch.arange(size, device=u.device)
        return (place >= first) & (place < first + self.pixels)

    def check(self, shape: Sequence[int]) -> None:
        check_image(self, shape)
        if not 0 < self.pixels <= min(shape[1:]):
            raise ConfigError(f"pixels is {self.pixels}, expected 1 to {min(shape[1:])} for a cutout of this image")
