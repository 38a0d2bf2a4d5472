"""Codec 12: few levels, coded against the receiver's levels and the random numbers that rounded the new ones.

A soft vote t, in steps of a level, is rounded to the whole number just above t - u, with u a shared random number, or
1/2 for the nearest. The receiver knows u and the last level h, and so the level that it would get for t = h: the
prediction. It also knows how far t has to move until the level is another one: g steps up, or 1 - g down. Most weights
move little, so a level is in doubt only where g is close to 0 or to 1. The context is the prediction with the octave
of g or 1 - g.

No table is sent. Both sides count the levels of each context, and code every piece by the counts of the pieces before.
The first byte is the mode. 0: the payload of codec 6, for a receiver without a reference, which may know the start. 1:
a checksum of the reference, the highest level, and the coder's words. See docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedvote.codecs import ans
from fedvote.codecs import coder_pool as coders
from fedvote.codecs.context_order import context_order
from fedvote.codecs.pending import then
from fedvote.codecs.probabilities import UNIT, in_units
from fedvote.codecs.reference import CHECKSUM, Start, checksum, read_reference
from fedvote.codecs.tallies import Tallies
from fedvote.core import Codec, Length
from fedvote.errors import WireError
from fedvote.randomness import BITS

ALL, AGAINST = b"\0", b"\1"
MOST_BROADCAST_LEVELS = 256
OCTAVES = 6  # of g and of 1 - g
FIRST_PIECE = 32  # levels; later pieces are half as long as all before them
ONE, HALF = 2**BITS, 2 ** (BITS - 1)

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Levels(Codec):
    tag: ClassVar[int] = 12
    dtype: ClassVar[torch.dtype | None] = torch.int16
    count: int
    reference: Tensor | None = None  # (count,) the receiver's levels
    levels: int = 2  # the reference is below this
    numbers: Tensor | None = None  # (count,) the shared random numbers that rounded the new levels; None: 1/2
    start: Start | None = None  # if the receiver can make it

    def encode(self, x: Tensor) -> bytes:
        if self.reference is None or (top := self._top(x)) >= MOST_BROADCAST_LEVELS:
            return ALL + self._whole.encode(x)
        return AGAINST + checksum(self.reference) + bytes([top]) + ans.encode(list(self._blocks(x, top)))

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        mode, rest = payload[:1], payload[1:]
        if mode == ALL:
            return self._whole.decode(rest, device)
        if mode != AGAINST:
            raise WireError(f"{len(payload)} bytes are neither levels nor changes of levels")
        _, rest = read_reference(rest, self.reference)
        if not rest or not rest[0]:
            raise WireError(f"{len(payload)} bytes have no highest level, expected 1 to {MOST_BROADCAST_LEVELS - 1}")
        x = self._read(rest[0], ans.Decoder(rest[1:]))
        if self._top(x) != rest[0]:
            raise WireError(f"a highest level of {self._top(x)}, expected {rest[0]}, as the message says")
        return x.to(device)

    def weigh_one(self, x: Tensor) -> Length:
        if self.reference is None or (top := self._top(x)) >= MOST_BROADCAST_LEVELS:
            return then(self._whole.weigh_one(x), lambda length: len(ALL) + length)
        blocks, head = list(self._blocks(x, top)), len(AGAINST) + CHECKSUM.size + 1
        return then(coders.length(self.count, lambda: blocks), lambda length: head + length)

    @property
    def _whole(self) -> Tallies:
        return Tallies(self.count, start=self.start)

    def _blocks(self, x: Tensor, top: int) -> Iterator[tuple[npt.NDArray[np.uint8], ans.Probabilities]]:
        """The levels in pieces, context after context, each with its probabilities."""
        order, runs = self._runs(top)
        ordered = x.to(torch.uint8).index_select(0, order.to(x.device)).cpu().numpy()
        start = 0
        for size, counts in runs:
            for part in parts(size):
                piece = ordered[start + part.start : start + part.stop]
                yield piece, shares(counts)
                counts += np.bincount(piece, minlength=top + 1)
            start += size

    def _read(self, top: int, decoder: ans.Decoder) -> Tensor:
        """The inverse of `_blocks`."""
        order, runs = self._runs(top)
        pieces = [np.zeros(0, np.int32)]
        for size, counts in runs:
            for part in parts(size):
                pieces.append(decoder.symbols(part.stop - part.start, shares(counts)))
                counts += np.bincount(pieces[-1], minlength=top + 1)
        decoder.finish()
        ordered = torch.from_numpy(np.concatenate(pieces).astype(np.int16))
        return torch.empty_like(ordered).scatter_(0, order.cpu(), ordered)

    def _runs(self, top: int) -> tuple[Tensor, list[tuple[int, Counts]]]:
        """The order of the levels, by context; and for each context that occurs its size and its first counts."""
        assert self.reference is not None
        context = contexts(self.reference, self.levels, self.numbers, top)
        sizes = torch.bincount(context.int(), minlength=2 * OCTAVES * (top + 1)).cpu().numpy()
        runs = [(int(size), expected(number, top)) for number, size in enumerate(sizes) if size]
        return context_order(context), runs

    def _top(self, x: Tensor) -> int:
        """The highest level, at least 1."""
        valid = x.shape == (self.count,) and not x.is_floating_point()
        lowest, highest = (int(x.min()), int(x.max())) if valid and self.count else (0, 0)
        if not valid or lowest < 0:
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} levels from 0 on")
        return max(1, highest)


def contexts(reference_D: Tensor, levels: int, numbers_D: Tensor | None, top: int) -> Tensor:
    """Each level's context: 12 times the prediction, plus the octave of g, from 0 (up) to 11 (down); int16."""
    if numbers_D is None:  # one context for each level: a table
        level_L = torch.arange(levels, device=reference_D.device)
        half_L = torch.full_like(level_L, HALF, dtype=torch.int32)
        return contexts(level_L, levels, half_L, top).index_select(0, reference_D.int())

    # t = h top / (levels - 1), the last level in new steps: a whole part and 24 binary places
    steps_L = np.arange(levels, dtype=np.int64) * top * ONE // (levels - 1)
    whole_D, places_D = (
        torch.from_numpy(part.astype(np.int32)).to(reference_D.device).index_select(0, reference_D.int())
        for part in (steps_L // ONE, steps_L % ONE)
    )

    # the prediction is the whole number just above t - u, and g its distance from t - u
    above_D = places_D > numbers_D
    gap_D = numbers_D - places_D + ONE * above_D
    return ((whole_D + above_D) * (2 * OCTAVES) + octaves(gap_D)).to(torch.int16)


def octaves(gap_D: Tensor) -> Tensor:
    """From 0, for gaps close to 0, to 11, for gaps close to one."""
    nearer_D = torch.minimum(gap_D, ONE - 1 - gap_D)
    octave_D = (((nearer_D + 1).float().view(torch.int32) >> 23) - 127 - (BITS - OCTAVES)).clamp(0, OCTAVES - 1)
    return torch.where(gap_D < HALF, octave_D, 2 * OCTAVES - 1 - octave_D)


def expected(context: int, top: int) -> Counts:
    """The counts that a context begins with: most for the prediction, some for the level next to it."""
    prediction, octave = divmod(context, 2 * OCTAVES)
    beside = prediction + 1 if octave < OCTAVES else prediction - 1
    counts = np.full(top + 1, 2.0**-6)
    counts[prediction] += 4
    if 0 <= beside <= top:
        counts[beside] += 0.5
    return counts


def shares(counts: Counts) -> ans.Probabilities:
    probabilities: ans.Probabilities = in_units((counts / counts.sum())[None])[0] / UNIT
    return probabilities


def parts(size: int) -> Iterator[slice]:
    """Where the levels of one context are cut."""
    start = 0
    while start < size:
        stop = min(size, start + max(FIRST_PIECE, start // 2))
        yield slice(start, stop)
        start = stop
