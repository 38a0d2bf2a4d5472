"""Codec 6: whole numbers, entropy-coded by how often each occurs: the levels of a soft vote.

A receiver that has the last round's numbers, the reference, gets the new ones coded against these: a weight's soft
vote seldom moves far. A receiver without them may still know the start: the numbers before round 1, which the seed
makes. Many weights never leave their start, so that the new numbers are coded against it.

The first byte is the mode. 0: bit planes, if they are shorter. 1: the number of values (2 bytes), the share of each
value but the first in 1/65536 (2 bytes each), and the numbers coded by these shares. 2: a checksum of the reference,
then the same with a row of shares for each context: a number of the reference, or a range if there are many numbers.
3: the same with the start in place of the reference, and fewer contexts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.codecs import ans
from fedvote.codecs import coder_pool as coders
from fedvote.codecs.context_order import context_order
from fedvote.codecs.integers import Integers
from fedvote.codecs.pending import then
from fedvote.codecs.probabilities import UNIT, Shares, in_units, read_units, write_units
from fedvote.codecs.reference import CHECKSUM, Start, checksum, read_reference
from fedvote.core import Codec, Length
from fedvote.errors import WireError

PLANES, CODED, AGAINST, SINCE_START = b"\0", b"\1", b"\2", b"\3"
MOST_VALUES = 4097  # the shares of more values take too many bytes
MOST_CONTEXTS = {AGAINST: 256, SINCE_START: 64}
NUMBERS_A_SHARE = {AGAINST: 64, SINCE_START: 256}  # at least, on average, so that a row of shares is worth its bytes
VALUES = struct.Struct("<H")


@dataclass(frozen=True, eq=False)
class Tallies(Codec):
    tag: ClassVar[int] = 6
    dtype: ClassVar[torch.dtype | None] = torch.int16
    count: int
    reference: Tensor | None = None  # (count,) the receiver's numbers
    levels: int = 1  # the reference is below this
    start: Start | None = None  # if the receiver can make it

    def encode(self, x: Tensor) -> bytes:
        plain_size = self._plain_size(x)
        if plan := self._plan(x, plain_size):
            base = b"" if plan.base is None else checksum(plan.base)
            coded = plan.mode + base + plan.table + ans.encode(plan.blocks(x))
            if len(coded) <= plain_size:
                return coded
        return PLANES + Integers(self.count).encode(x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        mode, rest = payload[:1], payload[1:]
        if mode == PLANES:
            return self._decode_planes(rest, device)
        if mode in (AGAINST, SINCE_START):
            what = "broadcast" if mode == AGAINST else "start"
            _, rest = read_reference(rest, self._base(mode)[0], what=what)
        if mode not in (CODED, AGAINST, SINCE_START) or len(rest) < VALUES.size:
            raise WireError(f"{len(payload)} bytes are neither bit planes nor coded numbers")
        values = VALUES.unpack_from(rest)[0]
        if not 2 <= values <= MOST_VALUES:
            raise WireError(f"numbers of {values} values, expected 2 to {MOST_VALUES}")
        contexts = self._contexts(mode, values)
        shares, words = read_units(rest[VALUES.size :], len(contexts.sizes), values)
        rows = zip(contexts.sizes, shares / UNIT, strict=True)
        numbers = np.concatenate([np.zeros(0, np.int32), *ans.decode(words, [(int(n), p) for n, p in rows])])
        x = contexts.undo(torch.from_numpy(numbers.astype(np.int16)))
        if values != self._values(x) or not np.array_equal(shares, _shares(contexts.counts(x, values))):
            raise WireError("the shares do not match the numbers: the words were altered or cut")
        if len(payload) > self._plain_size(x):
            raise WireError("coded numbers where bit planes take fewer bytes")
        return x.to(device)

    def _decode_planes(self, payload: bytes, device: torch.device | str) -> Tensor:
        x = Integers(self.count).decode(payload, device)
        if self.reference is None and self.start is None and self.encode(x)[:1] != PLANES:
            raise WireError("bit planes where coded numbers take no more bytes")
        return x

    def weigh_one(self, x: Tensor) -> Length:
        plain_size = self._plain_size(x)
        plan = self._plan(x, plain_size)
        if plan is None:
            return plain_size
        blocks = plan.blocks(x)  # made now, not in the coder's thread
        words = coders.length(self.count, lambda: blocks)
        return then(words, lambda length: min(plan.head + length, plain_size))

    def _plan(self, x: Tensor, plain_size: int) -> _Plan | None:
        """The mode that should take the fewest bytes; None if no table of shares is worth its bytes."""
        values = self._values(x)
        if values > MOST_VALUES or VALUES.size + 2 * values > plain_size:
            return None
        against = AGAINST if self.reference is not None else SINCE_START
        modes = (CODED,) if self._base(against)[0] is None else (CODED, against)
        plans = (_Plan(mode, self._base(mode)[0], self._contexts(mode, values), x, values) for mode in modes)
        return min(plans, key=lambda plan: plan.bits)

    def _base(self, mode: bytes) -> tuple[Tensor | None, int]:
        """The numbers that a mode builds on, if the receiver has them; and what they are below."""
        if mode == SINCE_START and self.start is not None:
            return self.start.numbers, self.start.levels
        return self.reference if mode == AGAINST else None, self.levels

    def _contexts(self, mode: bytes, values: int) -> _Contexts:
        base, levels = self._base(mode)
        if base is None:
            return _Contexts(self.count)
        number = max(1, min(levels, MOST_CONTEXTS[mode], self.count // (NUMBERS_A_SHARE[mode] * values)))
        range_L = (torch.arange(levels) * number // levels).to(base.device, torch.uint8)
        return _Contexts(self.count, range_L.index_select(0, base.int()))

    def _plain_size(self, x: Tensor) -> int:
        return len(PLANES) + Integers(self.count).weigh_one(x)

    def _values(self, x: Tensor) -> int:
        """The number of possible values: the largest plus one, at least 2."""
        return max(2, int(x.max()) + 1) if self.count else 2


class _Contexts:
    """Groups of numbers, each with its own shares. The numbers of one group keep their order."""

    def __init__(self, count: int, context: Tensor | None = None):
        self.context = context
        sizes = np.array([count]) if context is None else torch.bincount(context.int()).cpu().numpy()
        self.groups = np.flatnonzero(sizes) if count else np.arange(len(sizes))  # without empty ones
        self.sizes: Shares = sizes[self.groups]

    def counts(self, x: Tensor, values: int) -> Shares:
        """(C, V) how often each value occurs in each group."""
        joint = x.int() if self.context is None else self.context.to(x.device).int() * values + x
        size = values * (int(self.groups.max(initial=0)) + 1)
        counts: Shares = torch.bincount(joint, minlength=size).cpu().numpy()
        return counts.reshape(-1, values)[self.groups]

    def order(self, x: Tensor) -> Tensor:
        """The numbers, group after group."""
        return x if self.context is None else x.index_select(0, context_order(self.context.to(x.device)))

    def undo(self, ordered: Tensor) -> Tensor:
        """The inverse of `order`."""
        if self.context is None:
            return ordered
        return torch.empty_like(ordered).scatter_(0, context_order(self.context.to(ordered.device)), ordered)


class _Plan:
    """One mode of coding numbers: its table of shares, and the bits that it takes."""

    def __init__(self, mode: bytes, base: Tensor | None, contexts: _Contexts, x: Tensor, values: int):
        counts = contexts.counts(x, values)
        self.mode, self.base, self.contexts, self.shares = mode, base, contexts, _shares(counts)
        self.table = VALUES.pack(values) + write_units(self.shares)
        self.head = len(mode) + (0 if base is None else CHECKSUM.size) + len(self.table)  # bytes before the words
        self.bits = 8 * self.head - float((counts * np.log2(self.shares / UNIT)).sum())

    def blocks(self, x: Tensor) -> ans.Blocks:
        groups = np.split(self.contexts.order(x).cpu().numpy(), np.cumsum(self.contexts.sizes)[:-1])
        return list(zip(groups, self.shares / UNIT, strict=True))


def _shares(counts: Shares) -> Shares:
    return in_units(counts / np.maximum(counts.sum(1, keepdims=True), 1))
