"""Whole numbers by their own histogram: the levels of a soft vote, entropy-coded.

A byte says how the rest is written. 0: as bit planes, where that is shorter. 1: how many values there are (2 bytes),
the share of each but the first in 1/65536 (2 bytes each), and the numbers coded by those shares.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.codecs import ans, coder, coders
from fedvote.codecs.integers import Integers
from fedvote.codecs.shares import UNIT, Shares, in_units, read_units, write_units
from fedvote.core import Codec, WireError
from fedvote.later import Length, then

PLANES, CODED = b"\0", b"\1"
MOST_VALUES = 4097  # with more, the histogram itself is too long
VALUES = struct.Struct("<H")


@dataclass(frozen=True)
class Tallies(Codec):
    tag: ClassVar[int] = 6
    count: int

    def encode(self, x: Tensor) -> bytes:
        plain_size = len(PLANES) + Integers(self.count).weigh_one(x)
        values = self._values(x)
        if self._may_be_coded(values, plain_size):
            numbers = x.cpu().numpy()
            shares = _histogram(numbers)
            words = ans.encode([(numbers, shares[0] / UNIT)])
            coded = CODED + VALUES.pack(values) + write_units(shares) + words
            if len(coded) <= plain_size:
                return coded
        return PLANES + Integers(self.count).encode(x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        how, rest = payload[:1], payload[1:]
        if how == PLANES:
            return Integers(self.count).decode(rest, device)
        if how != CODED or len(rest) < VALUES.size:
            raise WireError(f"{len(payload)} bytes are neither bit planes nor coded numbers")
        values = VALUES.unpack_from(rest)[0]
        if not 2 <= values <= MOST_VALUES:
            raise WireError(f"numbers of {values} values, expected 2 to {MOST_VALUES}")
        shares, words = read_units(rest[VALUES.size :], 1, values)
        (numbers,) = ans.decode(words, [(self.count, shares[0] / UNIT)])
        if not np.array_equal(shares, _histogram(numbers)):
            raise WireError("the shares are not those of the numbers: the words were altered or cut")
        return torch.from_numpy(numbers.astype(np.int16)).to(device)

    def weigh_one(self, x: Tensor) -> Length:
        plain_size = len(PLANES) + Integers(self.count).weigh_one(x)
        values = self._values(x)
        if not self._may_be_coded(values, plain_size):
            return plain_size
        numbers = x.cpu().numpy()
        before = len(CODED) + VALUES.size + 2 * (values - 1)
        words = coders.length(self.count, lambda: [(numbers, _histogram(numbers)[0] / UNIT)])
        return then(words, lambda length: min(before + length, plain_size))

    def _values(self, x: Tensor) -> int:
        """How many values there are, of which a share is sent for each but the first."""
        return max(2, int(x.max()) + 1) if self.count else 2

    @staticmethod
    def _may_be_coded(values: int, plain_size: int) -> bool:
        return values <= MOST_VALUES and VALUES.size + 2 * values <= plain_size


def _histogram(numbers: coder.Symbols) -> Shares:
    """(1, V) the share of each value up to the largest."""
    return in_units(np.bincount(numbers, minlength=2)[None] / max(len(numbers), 1))
