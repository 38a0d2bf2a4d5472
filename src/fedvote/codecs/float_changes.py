"""Floats that the receiver holds as they were before: those that changed, or which way each of them went.

A byte says how the rest is written. 0: all of them, as floats. Otherwise a checksum of the reference follows; then,
with 1, the places of those that changed, and their values; with 2 or 3, for each, whether a step of known size went
down (+1), up (-1) or (with 3) nowhere, as votes. The shortest that tells the receiver every bit is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.binary import Binary
from fedvote.codecs.float32 import LARGEST, Float32
from fedvote.codecs.positions import read_positions, weigh_positions, write_positions
from fedvote.codecs.reference import CHECKSUM, bits_of, checksum, read_reference
from fedvote.codecs.ternary import Ternary
from fedvote.core import Codec, Length
from fedvote.errors import WireError

ALL, SOME, SIGNS, SIGNS_OR_NONE = b"\0", b"\1", b"\2", b"\3"


@dataclass(frozen=True, eq=False)
class FloatChanges(Codec):
    tag: ClassVar[int] = 11
    count: int
    reference: Tensor | None = None  # (count,) as the receiver has them
    step: float = 0.0  # by which the method moves each of them, if it moves all by the same; else 0

    def encode(self, x: Tensor) -> bytes:
        lengths = self._lengths(x)
        how = min(lengths, key=lambda way: lengths[way])
        return how + self._written(how, x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        how, rest = payload[:1], payload[1:]
        if how == ALL:
            return Float32(self.count).decode(rest, device)
        if how not in (SOME, SIGNS, SIGNS_OR_NONE):
            raise WireError(f"{len(payload)} bytes are neither floats nor what changed in them")
        reference, rest = read_reference(rest, self.reference)
        if how == SOME:
            index, rest = read_positions(rest, self.count)
            values = Float32(len(index)).decode(rest)
            if bool((bits_of(values) == bits_of(reference[index])).any()):
                raise WireError("a value that did not change among those that did")
            return reference.index_copy(0, index, values).to(device)
        signs = (Binary if how == SIGNS else Ternary)(self.count).decode(rest)
        if how == SIGNS_OR_NONE and bool(signs.all()):
            raise WireError("three ways to go where two would do")
        x = self._moved(reference, signs)
        if not bool((x.abs() <= LARGEST).all()):
            raise WireError(f"a step beyond {LARGEST:.3g}")
        return x.to(device)

    def weigh_one(self, x: Tensor) -> Length:
        Float32(self.count).weigh_one(x)  # or WireError
        return min(self._lengths(x).values())

    def _lengths(self, x: Tensor) -> dict[bytes, int]:
        """How many bytes each way takes that tells everything."""
        lengths = {ALL: 1 + 4 * self.count}
        if self.reference is not None and x.shape == (self.count,) and bool(x.isfinite().all()):
            changed, signs = self._changed(x), self._signs(x)
            lengths[SOME] = 1 + CHECKSUM.size + weigh_positions(changed) + 4 * len(changed)
            if torch.equal(bits_of(self._moved(self.reference.to(x.device), signs)), bits_of(x)):
                two = bool(signs.all())
                lengths[SIGNS if two else SIGNS_OR_NONE] = 1 + CHECKSUM.size + -(-self.count // (8 if two else 5))
        return lengths

    def _written(self, how: bytes, x: Tensor) -> bytes:
        if how == ALL or self.reference is None:
            return Float32(self.count).encode(x)
        if how == SOME:
            changed = self._changed(x)
            return checksum(self.reference) + write_positions(changed) + Float32(len(changed)).encode(x[changed])
        return checksum(self.reference) + (Binary if how == SIGNS else Ternary)(self.count).encode(self._signs(x))

    def _changed(self, x: Tensor) -> Tensor:
        assert self.reference is not None
        return (bits_of(x) != bits_of(self.reference.to(x.device))).nonzero()[:, 0]

    def _signs(self, x: Tensor) -> Tensor:
        """(count,) +1 where the floats went down, -1 where they went up."""
        assert self.reference is not None
        return (self.reference.to(x.device) - x).sign().to(torch.int8)

    def _moved(self, reference: Tensor, signs: Tensor) -> Tensor:
        # theta^(k+1) = theta^(k) - eta s, in the very operations of a method's merge
        return reference - self.step * signs
