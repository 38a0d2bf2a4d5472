"""Flip: half of the images are mirrored, left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fedvote.data.augment.augmentation import Augmentation, check_image


@dataclass(frozen=True)
class Flip(Augmentation):
    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        mirrored = u[:, 0] < 0.5
        return x.flip(-1).where(mirrored[:, None, None, None], x)

    def check(self, shape: Sequence[int]) -> None:
        check_image(self, shape)
