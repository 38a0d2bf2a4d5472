"""Noise: every feature is moved by a random amount; for tables, whose features are scaled alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.data.augment.augmentation import Augmentation
from fedvote.randomness import BITS, scramble
from fedvote.settings import check_above_zero

DEVIATION = (4 * (256**2 - 1) / 12) ** 0.5  # of the sum of four random bytes


@dataclass(frozen=True)
class Noise(Augmentation):
    """Noise: every feature is moved by a sum of four random bytes: nearly normal, the same on every device."""

    deviation: float = 0.1  # standard deviation, in units of the scaled inputs

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        feature = torch.arange(math.prod(x.shape[1:]), dtype=torch.int32, device=x.device)
        example = (u * 2**BITS).to(torch.int32)
        bits = scramble(scramble(feature.repeat(len(x), 1), example), example)
        total = sum((bits >> 8 * byte & 0xFF for byte in range(4)), start=torch.zeros_like(bits)) - 4 * 255 // 2
        return x + (total.float() * (self.deviation / DEVIATION)).view(x.shape)

    def check(self, shape: Sequence[int]) -> None:
        check_above_zero(self, "deviation")
