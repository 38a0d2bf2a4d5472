"""Codec 2: votes of -1, 0 and +1, five per byte. 3^5 = 243 of the 256 bytes are used; the others are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.codecs.not_a_ballot import not_a_ballot
from fedvote.core import Codec
from fedvote.errors import WireError

PLACES = (81, 27, 9, 3, 1)
VOTES_OF_BYTE = np.stack([np.arange(243) // place % 3 for place in PLACES], 1).astype(np.int8) - 1


@dataclass(frozen=True)
class Ternary(Codec):
    tag: ClassVar[int] = 2
    dtype: ClassVar[torch.dtype | None] = torch.int8
    count: int

    @property
    def plain_bits(self) -> float:
        return 1.6

    @property
    def largest(self) -> int:
        return 1

    @property
    def numbers_per_value(self) -> int:
        return 2

    def to_whole_numbers(self, x: Tensor) -> Tensor:
        """Two numbers a vote: 1 for 0, and 1 for +1."""
        self._check(x)
        return torch.stack([x == 0, x == 1]).to(torch.int8)

    def encode(self, x: Tensor) -> bytes:
        self._check(x)
        columns = torch.nn.functional.pad(x.to(torch.int8) + 1, (0, -len(x) % 5)).view(-1, 5).to(torch.uint8).unbind(1)
        packed = columns[0].clone()
        for column in columns[1:]:  # the first vote has the highest place
            packed = packed * 3 + column
        return packed.cpu().numpy().tobytes()

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != -(-self.count // 5):
            raise WireError(f"{len(payload)} bytes where {self.count} ternary votes take {-(-self.count // 5)}")
        data = np.frombuffer(payload, np.uint8)
        if data.size and data.max() > 242:
            raise WireError(f"byte {data.max()} stands for no five votes of -1, 0 and +1 (at most 242)")
        votes = VOTES_OF_BYTE[data].reshape(-1)
        if (votes[self.count :] != -1).any():
            raise WireError("the last byte has votes beyond the end")
        return torch.from_numpy(votes[: self.count].copy()).to(device)

    def weigh_one(self, x: Tensor) -> int:
        self._check(x)
        return -(-self.count // 5)

    def _check(self, x: Tensor) -> None:
        if x.shape != (self.count,) or bool(((x != 0) & (x.abs() != 1)).any()):
            raise not_a_ballot(x, self.count, (-1, 0, 1))
