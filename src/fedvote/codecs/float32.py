"""Floats, four bytes each, little-endian; infinities and not-a-numbers are refused."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.core import Codec, WireError
from fedvote.later import Length


@dataclass(frozen=True)
class Float32(Codec):
    tag: ClassVar[int] = 4
    count: int

    def encode(self, x: Tensor) -> bytes:
        self._check_shape(x)
        return x.float().cpu().numpy().astype("<f4").tobytes()

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != 4 * self.count:
            raise WireError(f"{len(payload)} bytes where {self.count} floats take {4 * self.count}")
        x = np.frombuffer(payload, "<f4").astype(np.float32)
        if not np.isfinite(x).all():
            raise self._not_finite(int(np.isfinite(x).sum()))
        return torch.from_numpy(x).to(device)

    def weigh(self, rows: Tensor) -> list[Length | WireError]:
        self._check_shape(rows[0])
        if not self.count:
            return [0] * len(rows)
        ends = zip(*torch.stack(rows.aminmax(dim=1)).tolist(), strict=True)  # one of which is what is not finite
        return [
            4 * self.count if all(map(isfinite, both)) else self._not_finite(int(rows[k].isfinite().sum()))
            for k, both in enumerate(ends)
        ]

    def weigh_one(self, x: Tensor) -> Length:
        (weight,) = self.weigh(x[None])
        if isinstance(weight, WireError):
            raise weight
        return weight

    def _check_shape(self, x: Tensor) -> None:
        if x.shape != (self.count,):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} floats")

    def _not_finite(self, finite: int) -> WireError:
        return WireError(f"{self.count - finite} of {self.count} floats are infinite or not a number")
