"""Ballots as packed bits: counted, weighed and compared in a fraction of the memory of one byte per vote.

A ballot has a bit plane for each value of the alphabet but the first, in words of 64 bits. A bit says whether the vote
has that value; a vote with no bit in any plane has the first value. The first vote of a byte is its highest bit, as on
the wire. Ternary votes take two bits here, and 1.6 on the wire: so the same operations on words serve both alphabets.

- Votes are counted by carry-save addition: a few logical operations add eight ballots to 64 counts at once.
- Votes are weighed in float32, ballot after ballot: the same bits as one addition per vote.
- Ballots are compared by XOR and popcount.

If numba (the extra `fast`) is installed, it compiles the loops for the CPU. Without it, and on a GPU, torch runs them.
Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Lock
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.packed import plain

Alphabet = tuple[int, ...]
WORTH_COMPILING = 2**15  # words: two million votes


@dataclass(frozen=True, eq=False)
class Packed:
    """A stack of ballots as bits. Bits beyond the last weight are zeros."""

    words_KPW: Tensor  # int64, one plane for each value of the alphabet but the first
    count: int  # D, the number of voted weights
    alphabet: Alphabet

    def __len__(self) -> int:
        return len(self.words_KPW)

    def row(self, k: int) -> Packed:
        return Packed(self.words_KPW[k : k + 1], self.count, self.alphabet)


def pack(votes_KD: Tensor, alphabet: Alphabet) -> Packed:
    """Votes as bits, on the same device."""
    K, D = votes_KD.shape
    words_KPW = votes_KD.new_zeros((K, len(alphabet) - 1, -(-D // 64)), dtype=torch.int64)
    for words_PW, votes_D in zip(words_KPW, votes_KD, strict=True):
        for words_W, value in zip(words_PW, alphabet[1:], strict=True):
            words_W.view(torch.uint8)[: -(-D // 8)] = plain.pack_bits(votes_D, value)
    return Packed(words_KPW, D, alphabet)


def unpack(ballots: Packed) -> Tensor:
    """(K, D) the votes, one byte each; int8."""
    bytes_KPB = ballots.words_KPW.view(torch.uint8)
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=bytes_KPB.device)
    bits_KPD = (bytes_KPB[..., None] >> shifts & 1).flatten(2)[:, :, : ballots.count]
    return _votes(bits_KPD, ballots.alphabet)


def votes_at(ballots: Packed, places_n: Tensor) -> Tensor:
    """(K, n) the votes on these weights; int8."""
    bytes_KPn = ballots.words_KPW.view(torch.uint8)[:, :, places_n // 8]
    return _votes(bytes_KPn >> (7 - places_n % 8).to(torch.uint8) & 1, ballots.alphabet)


def _votes(bits_KPn: Tensor, alphabet: Alphabet) -> Tensor:
    """Bits as votes: a vote without a bit in any plane has the first value."""
    first, *others = alphabet
    votes_Kn = torch.full_like(bits_KPn[:, 0], first, dtype=torch.int8)
    for value, bits_Kn in zip(others, bits_KPn.unbind(1), strict=True):
        votes_Kn += bits_Kn.to(torch.int8) * (value - first)
    return votes_Kn


def count(ballots: Packed) -> Tensor:
    """(P, D) the number of votes for each value but the first: uint8 up to 255 ballots, then int16, then int32."""
    K, P, W = ballots.words_KPW.shape
    rows_KW = ballots.words_KPW.view(K, P * W)
    counts_D = _numbers(64 * P * W, K, rows_KW.device)

    def work(loops: ModuleType, cut: slice) -> None:
        _write(counts_D, cut, lambda bytes_GD: loops.count(bytes_GD, rows_KW, cut))

    _each(rows_KW, P * W, work)
    return counts_D.view(P, 64 * W)[:, : ballots.count]


def tally(ballots: Packed, weights_K: Tensor) -> Tensor:
    """(V, D) the weight behind each value: sum over m of lambda_m 1(w_m = v), in float32 and in the ballots' order."""
    words_KPW, weights_K = ballots.words_KPW, weights_K.float().contiguous()
    K, P, W = words_KPW.shape
    rows_KW = words_KPW.view(K, P * W)
    total_VD = plain.empty((P + 1, 64 * W), torch.float32, rows_KW.device)

    def work(loops: ModuleType, cut: slice) -> None:
        part_VD = total_VD[:, 64 * cut.start : 64 * cut.stop]
        first_KW = plain.rest(words_KPW[:, :, cut])
        loops.weigh(part_VD[0], first_KW, slice(0, cut.stop - cut.start), weights_K)
        for p, row_D in enumerate(part_VD[1:]):
            loops.weigh(row_D, rows_KW, slice(p * W + cut.start, p * W + cut.stop), weights_K)

    _each(rows_KW, W, work)
    return total_VD[:, : ballots.count]


def agreements(ballots: Packed, start: int = 0, stop: int | None = None) -> Tensor:
    """(K, K) the number of weights, from start to stop, on which two ballots agree; int64."""
    stop = ballots.count if stop is None else stop
    if not 0 <= start <= stop <= ballots.count:
        raise ConfigError(f"weights {start} to {stop}, expected a range within 0 to {ballots.count}")
    words_KPW = _part(ballots, start, stop)
    agree_KK, one_at_a_time = words_KPW.new_full((len(ballots), len(ballots)), stop - start), Lock()

    def work(loops: ModuleType, cut: slice) -> None:
        differ_KK = loops.differ(words_KPW, cut)
        with one_at_a_time:
            agree_KK.sub_(differ_KK)

    _each(words_KPW, words_KPW.shape[2], work)
    return agree_KK


class Counter:
    """Count ballots as they arrive, in constant memory: eight waiting ballots, and counts up to `most` in binary."""

    def __init__(self, count: int, alphabet: Alphabet, most: int, device: torch.device | str = "cpu") -> None:
        self.count, self.alphabet, self.most, self.ballots = count, alphabet, most, 0
        self.planes, words = len(alphabet) - 1, -(-count // 64)
        self.waiting = torch.zeros((8, self.planes * words), dtype=torch.int64, device=device)
        self.digits = torch.zeros((max(3, most.bit_length()), self.planes * words), dtype=torch.int64, device=device)
        self._filled = 0

    def add(self, ballots: Packed) -> None:
        """Count a stack of ballots."""
        if (ballots.count, ballots.alphabet) != (self.count, self.alphabet):
            raise ConfigError(
                f"a ballot of {ballots.count} votes of {ballots.alphabet}, expected {self.count} of {self.alphabet}"
            )
        if self.ballots + len(ballots) > self.most:
            raise ConfigError(f"ballot {self.most + 1} of at most {self.most}: create the Counter with a larger `most`")
        for row_W in ballots.words_KPW.flatten(1):
            plain.copy(self.waiting[self._filled], row_W)
            self.ballots, self._filled = self.ballots + 1, self._filled + 1
            if self._filled == len(self.waiting):
                self._empty()

    def counts(self) -> Tensor:
        """(P, D) the same as `count` of all ballots so far."""
        self._empty()
        words = self.digits.shape[1]
        counts_D = _numbers(64 * words, self.ballots, self.digits.device)

        def work(loops: ModuleType, cut: slice) -> None:
            _write(counts_D, cut, lambda bytes_GD: loops.expand(bytes_GD, self.digits, cut))

        _each(self.digits, words, work)
        return counts_D.view(self.planes, 64 * words // self.planes)[:, : self.count]

    def _empty(self) -> None:
        rows_KW, self._filled = self.waiting[: self._filled], 0
        _each(self.digits, self.digits.shape[1], lambda loops, cut: loops.add(self.digits, rows_KW, cut))


def _each(rows: Tensor, words: int, work: Callable[[ModuleType, slice], Any]) -> list[Any]:
    """Do the work on all words, a slice at a time; compiled loops run on as many threads as torch uses."""
    loops = _loops(rows)
    step = loops.words_at_a_time(rows)
    cuts = [slice(start, min(start + step, words)) for start in range(0, words, step)]
    threads = min(torch.get_num_threads(), len(cuts)) if loops is not plain else 1
    if threads < 2:
        return [work(loops, cut) for cut in cuts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda cut: work(loops, cut), cuts))


def _loops(rows: Tensor) -> ModuleType:
    """The module with the faster loops: the compiled one, if it is available and the work is large."""
    if rows.device.type != "cpu" or rows.numel() < WORTH_COMPILING:
        return plain
    return _compiled() or plain


@cache
def _compiled() -> ModuleType | None:
    try:
        from fedvote.packed import compiled
    except (ImportError, RuntimeError):  # numba is not installed, or has no folder for its cache
        return None
    return compiled


def _numbers(size: int, most: int, device: torch.device) -> Tensor:
    """Uninitialised memory for `size` numbers up to `most`, in the smallest dtype."""
    dtype = torch.uint8 if most < 2**8 else torch.int16 if most < 2**15 else torch.int32
    return plain.empty((size,), dtype, device)


def _write(numbers_D: Tensor, cut: slice, write: Callable[[Tensor], None]) -> None:
    """Let `write` fill the numbers of a slice of words, from (G, D) bytes: all lowest bytes first, then the next."""
    part_D, size = numbers_D[64 * cut.start : 64 * cut.stop], numbers_D.itemsize
    if size == 1:
        write(part_D[None])
        return
    bytes_GD = part_D.new_empty((size, len(part_D)), dtype=torch.uint8)
    write(bytes_GD)
    plain.copy(part_D.view(torch.uint8).view(-1, size), bytes_GD.T)


def _part(ballots: Packed, start: int, stop: int) -> Tensor:
    """The words of the weights from start to stop; bits of other weights in these words are zeros."""
    if (start, stop) == (0, ballots.count):
        return ballots.words_KPW
    words_KPW = ballots.words_KPW[:, :, start // 64 : -(-stop // 64)].clone()
    if words_KPW.numel():
        bytes_KPB, first = words_KPW.view(torch.uint8), start // 64 * 8
        bytes_KPB[:, :, : start // 8 - first] = 0
        bytes_KPB[:, :, start // 8 - first] &= 0xFF >> start % 8
        bytes_KPB[:, :, -(-stop // 8) - first :] = 0
        bytes_KPB[:, :, -(-stop // 8) - first - 1] &= 0xFF << -stop % 8 & 0xFF
    return words_KPW
