"""Codec 9: whole numbers from -limit to limit. The limit is added, then codec 3 or 6 writes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.integers import Integers
from fedvote.codecs.tallies import Tallies
from fedvote.core import Codec, Length
from fedvote.errors import UnwritableError, WireError

FINEST = 2**14 - 1  # the largest limit: a number plus the limit fits int16


@dataclass(frozen=True)
class Signed(Codec):
    tag: ClassVar[int] = 9
    count: int
    limit: int
    entropy: bool = True  # codec 6 instead of 3

    @property
    def plain_bits(self) -> float:
        bits = math.log2(2 * self.limit + 1)
        return bits if self.entropy else math.ceil(bits)

    @property
    def largest(self) -> int:
        return 2 * self.limit

    def to_whole_numbers(self, x: Tensor) -> Tensor:
        self._check(x)
        return x[None].to(torch.int32) + self.limit

    def encode(self, x: Tensor) -> bytes:
        self._check(x)
        return self._numbers.encode(x.to(torch.int16) + self.limit)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        numbers = self._numbers.decode(payload, device)
        if self.count and int(numbers.max()) > 2 * self.limit:
            raise WireError(f"a number of {int(numbers.max()) - self.limit}, expected at most {self.limit}")
        return (numbers - self.limit).to(whole_numbers(self.limit))

    def weigh_one(self, x: Tensor) -> Length:
        self._check(x)
        return self._numbers.weigh_one(x.to(torch.int16) + self.limit)

    def _check(self, x: Tensor) -> None:
        whole = not x.is_floating_point()
        lowest, highest = (int(end) for end in x.aminmax()) if whole and x.numel() else (0, 0)
        if whole and lowest == torch.iinfo(x.dtype).min:
            raise UnwritableError("the weights became NaN in training: there is nothing to send")
        if not whole or max(-lowest, highest) > self.limit:
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not whole numbers up to ±{self.limit}")

    @property
    def _numbers(self) -> Codec:
        return Tallies(self.count) if self.entropy else Integers(self.count)


def whole_numbers(limit: int) -> torch.dtype:
    """The smallest dtype for whole numbers from -limit to limit."""
    return torch.int8 if limit <= 127 else torch.int16
