"""Votes of -1 and +1, eight a byte."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.core import Codec


@dataclass(frozen=True)
class Binary(Codec):
    count: int

    def encode(self, x: Tensor) -> bytes:
        return pack_bits(x > 0)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        return unpack_bits(payload, self.count, device).to(torch.int8) * 2 - 1
