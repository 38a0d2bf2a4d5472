"""Codec 1: votes of -1 and +1, eight per byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.codecs.not_a_ballot import not_a_ballot
from fedvote.core import Codec


@dataclass(frozen=True)
class Binary(Codec):
    tag: ClassVar[int] = 1
    dtype: ClassVar[torch.dtype | None] = torch.int8
    count: int

    @property
    def plain_bits(self) -> float:
        return 1.0

    @property
    def largest(self) -> int:
        return 1

    def to_whole_numbers(self, x: Tensor) -> Tensor:
        """1 for +1."""
        self._check(x)
        return (x > 0)[None].to(torch.int8)

    def encode(self, x: Tensor) -> bytes:
        self._check(x)
        return pack_bits(x > 0)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        return unpack_bits(payload, self.count, device).to(torch.int8) * 2 - 1

    def weigh_one(self, x: Tensor) -> int:
        self._check(x)
        return -(-self.count // 8)

    def _check(self, x: Tensor) -> None:
        if x.shape != (self.count,) or bool((x.abs() != 1).any()):
            raise not_a_ballot(x, self.count, (-1, 1))
