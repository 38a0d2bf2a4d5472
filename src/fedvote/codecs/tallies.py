"""Whole numbers by how often each occurs: the levels of a soft vote, entropy-coded.

Who holds the numbers of the round before is told the new ones against those: a weight's soft vote seldom moves far.

A byte says how the rest is written. 0: as bit planes, where that is shorter. 1: how many values there are (2 bytes),
the share of each but the first in 1/65536 (2 bytes each), and the numbers coded by those shares. 2: a checksum of the
numbers held, and the same with a row of shares for every context, which is the number held, or a range of numbers where
there are many.
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
from fedvote.codecs.integers import Integers
from fedvote.codecs.pending import then
from fedvote.codecs.probabilities import UNIT, Shares, in_units, read_units, write_units
from fedvote.codecs.reference import CHECKSUM, checksum, read_reference
from fedvote.core import Codec, Length
from fedvote.errors import WireError

PLANES, CODED, AGAINST = b"\0", b"\1", b"\2"
MOST_VALUES = 4097  # with more, the shares themselves are too long
MOST_CONTEXTS = 256
NUMBERS_A_SHARE = 64  # on average, at least: a row of shares has to be worth its bytes
VALUES = struct.Struct("<H")


@dataclass(frozen=True, eq=False)
class Tallies(Codec):
    tag: ClassVar[int] = 6
    count: int
    reference: Tensor | None = None  # (count,) numbers that the receiver has already
    levels: int = 1  # those numbers are below this

    def encode(self, x: Tensor) -> bytes:
        plain_size = self._plain_size(x)
        if plan := self._plan(x, plain_size):
            base = checksum(self.reference) if plan.how == AGAINST and self.reference is not None else b""
            coded = plan.how + base + plan.table + ans.encode(plan.blocks(x))
            if len(coded) <= plain_size:
                return coded
        return PLANES + Integers(self.count).encode(x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        how, rest = payload[:1], payload[1:]
        if how == PLANES:
            return Integers(self.count).decode(rest, device)
        if how == AGAINST:
            _, rest = read_reference(rest, self.reference)
        if how not in (CODED, AGAINST) or len(rest) < VALUES.size:
            raise WireError(f"{len(payload)} bytes are neither bit planes nor coded numbers")
        values = VALUES.unpack_from(rest)[0]
        if not 2 <= values <= MOST_VALUES:
            raise WireError(f"numbers of {values} values, expected 2 to {MOST_VALUES}")
        contexts = self._contexts(how, values)
        shares, words = read_units(rest[VALUES.size :], len(contexts.sizes), values)
        rows = zip(contexts.sizes, shares / UNIT, strict=True)
        numbers = np.concatenate([np.zeros(0, np.int32), *ans.decode(words, [(int(n), p) for n, p in rows])])
        x = contexts.undo(torch.from_numpy(numbers.astype(np.int16)))
        if values != self._values(x) or not np.array_equal(shares, _shares(contexts.counts(x, values))):
            raise WireError("the shares are not those of the numbers: the words were altered or cut")
        return x.to(device)

    def weigh_one(self, x: Tensor) -> Length:
        plain_size = self._plain_size(x)
        plan = self._plan(x, plain_size)
        if plan is None:
            return plain_size
        blocks = plan.blocks(x)  # here, where the device is
        words = coders.length(self.count, lambda: blocks)
        return then(words, lambda length: min(plan.head + length, plain_size))

    def _plan(self, x: Tensor, plain_size: int) -> _Plan | None:
        """The way of coding that should take the fewest bytes; None, where no table of shares is worth its bytes."""
        values = self._values(x)
        if values > MOST_VALUES or VALUES.size + 2 * values > plain_size:
            return None
        ways = (CODED,) if self.reference is None else (CODED, AGAINST)
        return min((_Plan(how, self._contexts(how, values), x, values) for how in ways), key=lambda plan: plan.bits)

    def _contexts(self, how: bytes, values: int) -> _Contexts:
        if how == CODED or self.reference is None:
            return _Contexts(self.count)
        many = max(1, min(self.levels, MOST_CONTEXTS, self.count // (NUMBERS_A_SHARE * values)))
        return _Contexts(
            self.count, self.reference if many == self.levels else self.reference.int() * many // self.levels
        )

    def _plain_size(self, x: Tensor) -> int:
        return len(PLANES) + Integers(self.count).weigh_one(x)

    def _values(self, x: Tensor) -> int:
        """How many values there are, of which a share is sent for each but the first."""
        return max(2, int(x.max()) + 1) if self.count else 2


class _Contexts:
    """Numbers in groups, each of which has shares of its own; those of one group keep their order."""

    def __init__(self, count: int, context: Tensor | None = None):
        self.context = context
        sizes = np.array([count]) if context is None else torch.bincount(context.int()).cpu().numpy()
        self.groups = np.flatnonzero(sizes) if count else np.arange(len(sizes))  # those that are not empty
        self.sizes: Shares = sizes[self.groups]

    def counts(self, x: Tensor, values: int) -> Shares:
        """(C, V) how often each value is among the numbers of each group."""
        both = x.int() if self.context is None else self.context.to(x.device).int() * values + x
        least = values * (int(self.groups.max(initial=0)) + 1)
        found: Shares = torch.bincount(both, minlength=least).cpu().numpy()
        return found.reshape(-1, values)[self.groups]

    def order(self, x: Tensor) -> Tensor:
        """The numbers of one group after those of another."""
        return x if self.context is None else x[torch.argsort(self.context.to(x.device), stable=True)]

    def undo(self, ordered: Tensor) -> Tensor:
        if self.context is None:
            return ordered
        x = torch.empty_like(ordered)
        x[torch.argsort(self.context.to(x.device), stable=True)] = ordered
        return x


class _Plan:
    """How numbers would be coded."""

    def __init__(self, how: bytes, contexts: _Contexts, x: Tensor, values: int):
        counts = contexts.counts(x, values)
        self.how, self.contexts, self.shares = how, contexts, _shares(counts)
        self.table = VALUES.pack(values) + write_units(self.shares)
        self.head = len(how) + (CHECKSUM.size if how == AGAINST else 0) + len(self.table)  # bytes before the words
        self.bits = 8 * self.head - float((counts * np.log2(self.shares / UNIT)).sum())

    def blocks(self, x: Tensor) -> ans.Blocks:
        groups = np.split(self.contexts.order(x).cpu().numpy(), np.cumsum(self.contexts.sizes)[:-1])
        return list(zip(groups, self.shares / UNIT, strict=True))


def _shares(counts: Shares) -> Shares:
    return in_units(counts / np.maximum(counts.sum(1, keepdims=True), 1))
