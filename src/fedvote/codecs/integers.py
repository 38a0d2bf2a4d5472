"""Codec 3: whole numbers from 0 to 32767, as bit planes: a byte with their number, then the planes, lowest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.core import Codec
from fedvote.errors import WireError


@dataclass(frozen=True)
class Integers(Codec):
    tag: ClassVar[int] = 3
    dtype: ClassVar[torch.dtype | None] = torch.int16
    signed: ClassVar[bool] = False
    count: int

    def encode(self, x: Tensor) -> bytes:
        planes = self._planes(x)
        return bytes([planes]) + b"".join(pack_bits((x >> plane) & 1 == 1) for plane in range(planes))

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        planes, size = payload[0] if payload else 0, -(-self.count // 8)
        if not payload or planes > 15 or len(payload) != 1 + planes * size:
            raise WireError(f"{len(payload)} bytes are not {self.count} integers in {planes} bit planes")
        x = torch.zeros(self.count, dtype=torch.int16, device=device)
        for plane in range(planes):
            x |= (
                unpack_bits(payload[1 + plane * size : 1 + (plane + 1) * size], self.count, device).to(torch.int16)
                << plane
            )
        if planes != (int(x.max()).bit_length() if self.count else 0):
            raise WireError(f"{planes} bit planes where fewer are enough")
        return x

    def weigh_one(self, x: Tensor) -> int:
        return 1 + self._planes(x) * -(-self.count // 8)

    def _planes(self, x: Tensor) -> int:
        """The number of bits of the largest value."""
        valid = x.shape == (self.count,) and not x.is_floating_point()
        lowest, highest = (int(x.min()), int(x.max())) if valid and self.count else (0, 0)
        if not valid or lowest < 0 or highest > 32767:
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} integers from 0 to 32767")
        return highest.bit_length()
