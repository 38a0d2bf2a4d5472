"""Floats, four bytes each, little-endian; infinities and not-a-numbers are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.core import Codec, WireError


@dataclass(frozen=True)
class Float32(Codec):
    tag: ClassVar[int] = 4
    count: int

    def encode(self, x: Tensor) -> bytes:
        if x.shape != (self.count,):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} floats")
        return x.float().cpu().numpy().astype("<f4").tobytes()

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != 4 * self.count:
            raise WireError(f"{len(payload)} bytes where {self.count} floats take {4 * self.count}")
        x = np.frombuffer(payload, "<f4").astype(np.float32)
        if not np.isfinite(x).all():
            raise WireError(f"{(~np.isfinite(x)).sum()} of {self.count} floats are infinite or not a number")
        return torch.from_numpy(x).to(device)
