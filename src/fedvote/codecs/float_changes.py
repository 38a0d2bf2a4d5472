"""Codec 11: floats as changes of the reference, the floats that the receiver already has.

The first byte is the mode. 0: all floats. The other modes go on with a checksum of the reference. 1: the positions
and the new values of the floats that changed. 2 or 3: the direction of each float's step of known size, as votes:
down (+1), up (-1) or, with 3, no step (0). The encoder uses the shortest mode that reproduces every bit.
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
    dtype: ClassVar[torch.dtype | None] = torch.float32
    count: int
    reference: Tensor | None = None  # (count,) the receiver's floats
    step: float = 0.0  # the size of every float's step, if the method has one size for all; else 0

    def encode(self, x: Tensor) -> bytes:
        lengths = self._lengths(x)
        mode = min(lengths, key=lambda each: lengths[each])
        return mode + self._body(mode, x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        mode, rest = payload[:1], payload[1:]
        if mode == ALL:
            return Float32(self.count).decode(rest, device)
        if mode not in (SOME, SIGNS, SIGNS_OR_NONE):
            raise WireError(f"{len(payload)} bytes are neither floats nor changes of floats")
        reference, rest = read_reference(rest, self.reference)
        if mode == SOME:
            index, rest = read_positions(rest, self.count)
            values = Float32(len(index)).decode(rest)
            if bool((bits_of(values) == bits_of(reference[index])).any()):
                raise WireError("a value that is sent as changed equals the reference")
            return reference.index_copy(0, index, values).to(device)
        signs = (Binary if mode == SIGNS else Ternary)(self.count).decode(rest)
        if mode == SIGNS_OR_NONE and bool(signs.all()):
            raise WireError("ternary signs where binary signs are enough")
        x = self._moved(reference, signs)
        if not bool((x.abs() <= LARGEST).all()):
            raise WireError(f"a step to a float beyond ±{LARGEST:.3g}")
        return x.to(device)

    def weigh_one(self, x: Tensor) -> Length:
        Float32(self.count).weigh_one(x)  # raises WireError
        return min(self._lengths(x).values())

    def _lengths(self, x: Tensor) -> dict[bytes, int]:
        """The length in bytes of each mode that reproduces x exactly."""
        lengths = {ALL: 1 + 4 * self.count}
        if self.reference is not None and x.shape == (self.count,) and bool(x.isfinite().all()):
            changed, signs = self._changed(x), self._signs(x)
            lengths[SOME] = 1 + CHECKSUM.size + weigh_positions(changed) + 4 * len(changed)
            if torch.equal(bits_of(self._moved(self.reference.to(x.device), signs)), bits_of(x)):
                binary = bool(signs.all())
                lengths[SIGNS if binary else SIGNS_OR_NONE] = 1 + CHECKSUM.size + -(-self.count // (8 if binary else 5))
        return lengths

    def _body(self, mode: bytes, x: Tensor) -> bytes:
        if mode == ALL or self.reference is None:
            return Float32(self.count).encode(x)
        if mode == SOME:
            changed = self._changed(x)
            return checksum(self.reference) + write_positions(changed) + Float32(len(changed)).encode(x[changed])
        return checksum(self.reference) + (Binary if mode == SIGNS else Ternary)(self.count).encode(self._signs(x))

    def _changed(self, x: Tensor) -> Tensor:
        assert self.reference is not None
        return (bits_of(x) != bits_of(self.reference.to(x.device))).nonzero()[:, 0]

    def _signs(self, x: Tensor) -> Tensor:
        """(count,) +1 where the floats went down, -1 where they went up."""
        assert self.reference is not None
        return (self.reference.to(x.device) - x).sign().to(torch.int8)

    def _moved(self, reference: Tensor, signs: Tensor) -> Tensor:
        # theta^(k+1) = theta^(k) - eta s, by the same operations as in the method's merge
        return reference - self.step * signs
