"""Codec 8: a count sketch, which is a table of floats, row by row, four bytes each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.float32 import Float32
from fedvote.core import Codec, Length
from fedvote.errors import WireError


@dataclass(frozen=True)
class Sketch(Codec):
    tag: ClassVar[int] = 8
    dtype: ClassVar[torch.dtype | None] = torch.float32
    rows: int
    columns: int
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", self.rows * self.columns)

    def encode(self, x: Tensor) -> bytes:
        return Float32(self.count).encode(self._flat(x))

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        return Float32(self.count).decode(payload, device).view(self.rows, self.columns)

    def weigh(self, rows: Tensor) -> list[Length | WireError]:
        return Float32(self.count).weigh(torch.stack([self._flat(row) for row in rows]))

    def _flat(self, x: Tensor) -> Tensor:
        if x.shape != (self.rows, self.columns):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not a sketch of {self.rows} x {self.columns}")
        return x.reshape(-1)
