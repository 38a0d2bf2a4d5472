"""Codec 4: floats, four bytes each, little-endian. NaN, infinity and floats beyond ±2^30 are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.core import Codec, Length
from fedvote.errors import WireError

LARGEST = 2.0**30  # keeps sums and squares over many clients finite


@dataclass(frozen=True)
class Float32(Codec):
    tag: ClassVar[int] = 4
    dtype: ClassVar[torch.dtype | None] = torch.float32
    count: int

    def encode(self, x: Tensor) -> bytes:
        self._check_shape(x)
        return x.float().cpu().numpy().astype("<f4").tobytes()

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != 4 * self.count:
            raise WireError(f"{len(payload)} bytes where {self.count} floats take {4 * self.count}")
        x = np.frombuffer(payload, "<f4").astype(np.float32)
        valid = np.abs(x) <= LARGEST  # False for NaN
        if not valid.all():
            raise self._too_large(int(valid.sum()))
        return torch.from_numpy(x).to(device)

    def weigh(self, rows: Tensor) -> list[Length | WireError]:
        self._check_shape(rows[0])
        if not self.count:
            return [0] * len(rows)
        ranges = zip(*torch.stack(rows.aminmax(dim=1)).tolist(), strict=True)
        return [
            4 * self.count
            if all(abs(end) <= LARGEST for end in lowest_highest)
            else self._too_large(int((rows[k].abs() <= LARGEST).sum()))
            for k, lowest_highest in enumerate(ranges)
        ]

    def weigh_one(self, x: Tensor) -> Length:
        (weight,) = self.weigh(x[None])
        if isinstance(weight, WireError):
            raise weight
        return weight

    def _check_shape(self, x: Tensor) -> None:
        if x.shape != (self.count,):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} floats")

    def _too_large(self, valid: int) -> WireError:
        return WireError(f"{self.count - valid} of {self.count} floats are not numbers of at most {LARGEST:.3g}")
