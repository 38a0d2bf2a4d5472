"""Codec 13: floats that are whole numbers of steps away from the reference, the floats that the receiver already has.

Every block of 512 floats has its own step, a power of two. The new floats are h - 2^e l, in single precision, for the
reference h and levels l from -limit to limit. The first byte is the mode. 0: all floats. 1: a checksum of the
reference, the exponent e of each block (1 byte, signed), and the levels by codec 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.codecs.float32 import LARGEST, Float32
from fedvote.codecs.pending import then
from fedvote.codecs.reference import CHECKSUM, bits_of, checksum, read_reference
from fedvote.codecs.signed import Signed
from fedvote.core import Codec, Length
from fedvote.errors import WireError

ALL, STEPS = b"\0", b"\1"
BLOCK = 512
LOWEST, HIGHEST = -126, 127  # exponents of single precision
PRECISION = 20  # a step is at least so many binary places below the largest float of its block


@dataclass(frozen=True, eq=False)
class FloatSteps(Codec):
    tag: ClassVar[int] = 13
    dtype: ClassVar[torch.dtype | None] = torch.float32
    count: int
    limit: int  # the highest level
    reference: Tensor | None = None  # (count,) the receiver's floats
    shared: bool = False  # the sender has the reference for certain: floats are refused where steps would do

    @property
    def plain_bits(self) -> float:
        return self._levels.plain_bits

    def encode(self, x: Tensor) -> bytes:
        found = self._steps(x)
        if found is None or self.reference is None:
            return ALL + Float32(self.count).encode(x)
        exponent_b, level_N = found
        head = STEPS + checksum(self.reference) + exponent_b.to(torch.int8).cpu().numpy().tobytes()
        return head + self._levels.encode(level_N)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        mode, rest = payload[:1], payload[1:]
        if mode == ALL:
            x = Float32(self.count).decode(rest, device)
            if self.shared and self._steps(x) is not None:  # a message has one encoding
                raise WireError("plain floats where steps are enough")
            return x
        if mode != STEPS:
            raise WireError(f"{len(payload)} bytes are neither floats nor steps of floats")
        reference, rest = read_reference(rest, self.reference)
        if len(rest) < self._blocks:
            raise WireError(f"{len(rest)} bytes are too few for {self._blocks} exponents")
        exponent_b = torch.from_numpy(np.frombuffer(rest[: self._blocks], np.int8).astype(np.int32))
        if self._blocks and int(exponent_b.min()) < LOWEST:
            raise WireError(f"an exponent of {int(exponent_b.min())}, expected {LOWEST} to {HIGHEST}")
        level_N = self._levels.decode(rest[self._blocks :])
        x = moved(reference, exponent_b, level_N)
        if not bool((x.abs() <= LARGEST).all()):
            raise WireError(f"a step to a float beyond ±{LARGEST:.3g}")
        found = self._steps(x)
        if found is None or not (torch.equal(found[0], exponent_b) and torch.equal(found[1], level_N)):
            raise WireError("smaller steps than necessary, expected the largest that give these floats")
        return x.to(device)

    def weigh_one(self, x: Tensor) -> Length:
        whole = Float32(self.count).weigh_one(x)  # raises WireError
        found = self._steps(x)
        if found is None:
            return then(whole, lambda length: len(ALL) + length)
        head = len(STEPS) + CHECKSUM.size + self._blocks
        return then(self._levels.weigh_one(found[1]), lambda length: head + length)

    @property
    def _blocks(self) -> int:
        return -(-self.count // BLOCK)

    @property
    def _levels(self) -> Signed:
        return Signed(self.count, self.limit)

    def _steps(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """The exponents and levels that reproduce every bit of x; None if there are none."""
        if self.reference is None or x.shape != (self.count,) or not bool(x.isfinite().all()):
            return None
        reference = self.reference.to(x.device)
        guess_b = exponents(reference - x, self.limit)
        best_b, level_N = torch.full_like(guess_b, HIGHEST + 1), torch.zeros(self.count, device=x.device)
        for off in (-1, 0, 1):  # the largest step that fits: the difference may be rounded in its last bit
            exponent_b = (guess_b + off).clamp(LOWEST, HIGHEST)
            tried_N = nearest_levels((reference - x) / each(exponent_b, self.count), self.limit)
            same_N = bits_of(moved(reference, exponent_b, tried_N)) == bits_of(x)
            fits_b = blocks(same_N, True).all(1)
            best_b = torch.where(fits_b, exponent_b, best_b)
            level_N = torch.where(fits_b.repeat_interleave(BLOCK)[: self.count], tried_N, level_N)
        return None if bool((best_b > HIGHEST).any()) else (best_b, level_N.to(torch.int8))


def exponents(change_N: Tensor, limit: int, start_N: Tensor | None = None) -> Tensor:
    """(blocks,) of the smallest steps with which `limit` levels reach the largest change of each block.

    `start_N`: the floats before the change. Steps are not so small that these floats could not take them.
    """
    most_b = blocks(change_N.abs(), 0).amax(1) / limit
    if start_N is not None:
        most_b = torch.maximum(most_b, blocks(start_N.abs(), 0).amax(1) * 2.0**-PRECISION)
    exponent_b = torch.frexp(most_b).exponent  # 2^(e - 1) <= most < 2^e
    return torch.where(most_b == torch.exp2(exponent_b - 1.0), exponent_b - 1, exponent_b).clamp(LOWEST, HIGHEST)


def nearest_levels(steps_N: Tensor, limit: int) -> Tensor:
    """The nearest levels. None is -0.0, which would turn a float of -0.0 into 0.0: no message has such a level."""
    return steps_N.round().clamp(-limit, limit) + 0.0


def moved(reference_N: Tensor, exponent_b: Tensor, level_N: Tensor) -> Tensor:
    # theta^(k+1) = theta^(k) - 2^e l
    return reference_N - each(exponent_b, len(reference_N)) * level_N


def each(exponent_b: Tensor, count: int) -> Tensor:
    """(count,) the step of each float."""
    return torch.ldexp(torch.ones_like(exponent_b, dtype=torch.float32), exponent_b).repeat_interleave(BLOCK)[:count]


def blocks(x_N: Tensor, padding: float) -> Tensor:
    return F.pad(x_N, (0, -len(x_N) % BLOCK), value=padding).view(-1, BLOCK)
