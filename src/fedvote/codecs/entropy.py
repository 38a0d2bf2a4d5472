"""Codec 5: votes in less than a bit each, entropy-coded by context (vote_contexts.py).

The votes of one context share one distribution. For each context of 64 votes or more, a message contains the share of
each value, in 1/65536. A smaller context uses the expected distribution.
Eight binary or five ternary votes of one context make one symbol of the coder. There are 256 or 243 such symbols, and
their probabilities are products. Fewer symbols take less time: an eighth, or a fifth.

The first byte is the mode. 0: plain votes, if they are shorter. 1: the shares, then the coder's words. Votes have one
encoding: the decoder refuses the longer mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedvote.codecs import ans
from fedvote.codecs import coder_pool as coders
from fedvote.codecs.binary import Binary
from fedvote.codecs.context_order import context_order
from fedvote.codecs.not_a_ballot import not_a_ballot
from fedvote.codecs.pending import then
from fedvote.codecs.probabilities import UNIT, Shares, in_units, read_units, write_units
from fedvote.codecs.ternary import Ternary
from fedvote.core import Codec, Length
from fedvote.errors import WireError

VOTES_A_SYMBOL = {2: 8, 3: 5}  # by the size of the alphabet
PLAIN, CODED = b"\0", b"\1"
OWN_SHARES = 64  # votes from which on a context's own shares are worth sending


@dataclass(frozen=True, eq=False)
class EntropyVotes(Codec):
    """Votes with known contexts. `expected`: the probability of each value in each context."""

    tag: ClassVar[int] = 5
    dtype: ClassVar[torch.dtype | None] = torch.int8
    alphabet: tuple[int, ...]
    context: Tensor  # (D,) integers from 0 to C - 1
    expected: npt.NDArray[np.float64]  # (C, V)
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", len(self.context))
        lowest, highest = torch.stack(self.context.aminmax()).tolist() if self.count else (0, 0)
        if lowest < 0 or highest >= len(self.expected):
            raise WireError(f"contexts from {lowest} to {highest}, expected 0 to {len(self.expected) - 1}")

    @property
    def plain_bits(self) -> float:
        return math.log2(len(self.alphabet))

    def encode(self, x: Tensor) -> bytes:
        coded = self._coded(*self._shares_and_symbols(x))
        return coded if len(coded) <= self._plain_size else PLAIN + self._plain.encode(x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if payload[:1] == PLAIN:
            return self._decode_plain(payload[1:], device)
        if payload[:1] != CODED:
            raise WireError(f"{len(payload)} bytes are neither plain nor coded votes")
        shares, rest = self._read_shares(payload[1:])
        products = self._products(shares)
        decoded = ans.decode(rest, [(b - a, products[c]) for c, a, b in self._blocks])
        symbols = np.concatenate([np.zeros(0, np.int32), *decoded])
        padded = self._digits_of_symbol[torch.from_numpy(symbols).to(self.context.device)].view(-1)
        if not torch.equal(padded[self._padding], self._likeliest(shares)):
            raise WireError("a context has votes beyond its end")
        if not np.array_equal(shares, self._shares(self._counts(padded))):
            raise WireError("the shares do not match the votes: the words were altered or cut")
        if len(payload) > self._plain_size:
            raise WireError("coded votes where plain ones take fewer bytes")
        digits_D = torch.empty_like(self.context, dtype=torch.uint8)
        by_context = torch.cat([padded[:0], *(padded[begin : begin + count] for begin, count in self._runs)])
        digits_D.scatter_(0, self._order, by_context)
        return self._votes_of(digits_D).to(device)

    def _decode_plain(self, payload: bytes, device: torch.device | str) -> Tensor:
        votes_D = self._plain.decode(payload, device)
        if len(self._coded(*self._shares_and_symbols(votes_D.to(self.context.device)))) <= self._plain_size:
            raise WireError("plain votes where coded ones take no more bytes")
        return votes_D

    def weigh_one(self, x: Tensor) -> Length:
        shares, symbols = self._shares_and_symbols(x)
        head = len(CODED) + len(write_units(shares[self._sent]))
        blocks = self._coder_blocks(shares, symbols)  # made now, not in the coder's thread
        words, plain_size = coders.length(len(symbols), lambda: blocks), self._plain_size
        return then(words, lambda length: min(head + length, plain_size))  # which keeps the blocks alone in memory

    def _shares_and_symbols(self, x: Tensor) -> tuple[Shares, npt.NDArray[np.uint8]]:
        """The part of encoding that runs on the device."""
        digits_D = self._digits(x)
        padded = digits_D.index_select(0, self._source)
        shares = self._shares(self._counts(padded))
        padded[self._padding] = self._likeliest(shares)
        return shares, self._pack(padded).cpu().numpy()

    def _coded(self, shares: Shares, symbols: npt.NDArray[np.uint8]) -> bytes:
        """The part of encoding that runs on the CPU."""
        return CODED + write_units(shares[self._sent]) + ans.encode(self._coder_blocks(shares, symbols))

    def _coder_blocks(self, shares: Shares, symbols: npt.NDArray[np.uint8]) -> ans.Blocks:
        products = self._products(shares)
        return [(symbols[a:b], products[c]) for c, a, b in self._blocks]

    @cached_property
    def _plain(self) -> Codec:
        return (Binary if len(self.alphabet) == 2 else Ternary)(self.count)

    @property
    def _plain_size(self) -> int:
        return 1 + -(-self.count // self._size)  # a byte holds as many plain votes as a symbol does

    # Votes as digits 0, 1, ..., and digits as symbols.

    @property
    def _step(self) -> int:
        return self.alphabet[1] - self.alphabet[0]

    def _digits(self, x: Tensor) -> Tensor:
        digits_D = ((x - self.alphabet[0]) // self._step).to(torch.uint8)
        valid_D = (self._votes_of(digits_D) == x).logical_and_(digits_D < len(self.alphabet))
        if x.shape != self.context.shape or not bool(valid_D.all()):
            raise not_a_ballot(x, self.count, self.alphabet)
        return digits_D

    def _votes_of(self, digits_D: Tensor) -> Tensor:
        return digits_D.to(torch.int8) * self._step + self.alphabet[0]

    def _pack(self, padded: Tensor) -> Tensor:
        """Digits packed into symbols, the first vote in the highest place."""
        columns = padded.view(-1, self._size).unbind(1)
        symbols = columns[0].clone()
        for column in columns[1:]:
            symbols = symbols * len(self.alphabet) + column
        return symbols

    @cached_property
    def _digits_of_symbol(self) -> Tensor:
        V, size = len(self.alphabet), self._size
        places = V ** torch.arange(size - 1, -1, -1)
        return (torch.arange(V**size)[:, None] // places % V).to(torch.uint8).to(self.context.device)

    # The padded order of votes: context after context, each padded to whole symbols.

    @property
    def _size(self) -> int:
        return VOTES_A_SYMBOL[len(self.alphabet)]

    @cached_property
    def _votes(self) -> Shares:
        """(C,) the number of votes in each context."""
        return torch.bincount(self.context, minlength=len(self.expected)).cpu().numpy()

    @cached_property
    def _symbols(self) -> Shares:
        """(C,) the number of symbols in each context."""
        return -(-self._votes // self._size)

    @cached_property
    def _spare(self) -> Shares:
        """(C,) the number of places after each context's votes that its last symbol leaves empty."""
        return self._symbols * self._size - self._votes

    @cached_property
    def _blocks(self) -> list[tuple[int, int, int]]:
        """(context, begin, end) of its symbols, for each context that has votes."""
        ends = np.cumsum(self._symbols)
        return [(c, int(end - n), int(end)) for c, (n, end) in enumerate(zip(self._symbols, ends, strict=True)) if n]

    @cached_property
    def _order(self) -> Tensor:
        """(D,) the indices of the votes, sorted by context."""
        return context_order(self.context)

    @property
    def _runs(self) -> list[tuple[int, int]]:
        """(begin, count) of its votes in the padded order, for each context that has votes."""
        return [(a * self._size, int(self._votes[c])) for c, a, _ in self._blocks]

    @cached_property
    def _source(self) -> Tensor:
        """(P,) the index of the vote at each padded position; the padding has any index."""
        padding = self._order.new_zeros(int(self._spare.sum()))
        both = zip(self._order.split(self._votes.tolist()), padding.split(self._spare.tolist()), strict=True)
        return torch.cat([piece for pieces in both for piece in pieces])

    @cached_property
    def _padding(self) -> Tensor:
        """The positions of the padding, at the end of each context."""
        ends = np.cumsum(self._symbols) * self._size
        positions = [np.arange(end - n, end) for end, n in zip(ends, self._spare, strict=True)]
        return torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *positions])).to(self.context.device)

    # The shares of the values in each context.

    @cached_property
    def _sent(self) -> npt.NDArray[np.bool_]:
        """(C,) whether the message contains the shares of a context."""
        return self._votes >= OWN_SHARES

    @cached_property
    def _implied(self) -> Shares:
        return in_units(self.expected)

    def _counts(self, padded: Tensor) -> Shares:
        """(C, V) how often each value occurs in each context."""
        first, *rest = range(len(self.alphabet))
        counts = np.zeros((len(self.expected), len(self.alphabet)), np.int64)
        if self._blocks:
            contexts = [c for c, _, _ in self._blocks]
            counts[contexts, 1:] = torch.stack([self._sums(padded == digit) for digit in rest], 1).cpu().numpy()
            counts[contexts, first] = self._votes[contexts] - counts[contexts].sum(1)
        return counts

    def _sums(self, marked: Tensor) -> Tensor:
        """The number of marked votes in each context, padding excluded."""
        running = marked.cumsum(0, dtype=torch.int32)
        begin, last = self._edges
        return running[last] - running[begin] + marked[begin]

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor]:
        """The positions of the first and the last vote of each context that has votes."""
        begin = [a * self._size for _, a, _ in self._blocks]
        last = [a * self._size + int(self._votes[c]) - 1 for c, a, _ in self._blocks]
        device = self.context.device
        return torch.tensor(begin, device=device), torch.tensor(last, device=device)

    def _likeliest(self, shares: Shares) -> Tensor:
        """The padding of each context: its likeliest value, which takes the fewest bits."""
        likeliest = shares.argmax(1).astype(np.uint8)
        return torch.from_numpy(np.repeat(likeliest, self._spare)).to(self.context.device)

    def _shares(self, counts: Shares) -> Shares:
        own = in_units(counts / np.maximum(counts.sum(1, keepdims=True), 1))
        return np.where(self._sent[:, None], own, self._implied)

    def _read_shares(self, payload: bytes) -> tuple[Shares, bytes]:
        shares = self._implied.copy()
        shares[self._sent], rest = read_units(payload, int(self._sent.sum()), len(self.alphabet))
        return shares, rest

    def _products(self, shares: Shares) -> ans.Probabilities:
        """(C, V^size) the probability of every symbol of each context: the product of its votes' shares."""
        one = shares / UNIT
        products = np.ones((len(one), 1))
        for _ in range(self._size):
            products = (products[:, :, None] * one[:, None, :]).reshape(len(one), -1)
        return products
