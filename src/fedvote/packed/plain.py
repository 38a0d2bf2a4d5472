"""Loops over packed ballots in torch, on any device. Words of 64 bits are int64, lowest byte first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

TRANSPOSE = ((36, 0x0F0F0F0F), (18, 0x0000333300003333), (9, 0x0055005500550055))


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Uninitialised memory. On a CPU by numpy: on Linux it asks for large pages, whose first use is faster."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty(shape, str(dtype).removeprefix("torch.")))
    return torch.empty(shape, dtype=dtype, device=device)


def copy(to: Tensor, row: Tensor) -> None:
    """Copy a row. On a CPU by numpy: waking torch's threads takes longer than the copy."""
    if to.device.type == "cpu" and row.device.type == "cpu":
        np.copyto(to.numpy(), row.numpy())
    else:
        to.copy_(row)


def words_at_a_time(rows: Tensor) -> int:
    """As many words of all rows as fit the cache of a CPU, or 128 MiB on a GPU."""
    numbers = 2**17 if rows.device.type == "cpu" else 2**24
    return max(64, numbers // max(1, math.prod(rows.shape[:-1])))


def count(bytes_GD: Tensor, rows_KW: Tensor, cut: slice) -> None:
    """Write the number of rows that have each bit of a slice of words."""
    digits = [rows_KW.new_zeros(cut.stop - cut.start)] * max(3, len(rows_KW).bit_length())
    for eight_KW in rows_KW[:, cut].split(8):
        digits = carry_save(digits, eight_KW.unbind())
    _write(bytes_GD, digits)


def add(digits_PW: Tensor, rows_KW: Tensor, cut: slice) -> None:
    """Add rows of single bits to bit-sliced numbers."""
    digits_PW[:, cut] = torch.stack(carry_save(digits_PW[:, cut].unbind(), rows_KW[:, cut].unbind()))


def expand(bytes_GD: Tensor, digits_PW: Tensor, cut: slice) -> None:
    """Write bit-sliced numbers byte by byte."""
    _write(bytes_GD, digits_PW[:, cut].unbind())


def weigh(total_D: Tensor, rows_KW: Tensor, cut: slice, weights_K: Tensor) -> None:
    """Write the total weight of the rows that have each bit of a slice of words, added row by row."""
    total_D.zero_()
    for row_W, weight in zip(rows_KW[:, cut], weights_K.tolist(), strict=True):
        total_D.add_(unpack_bits(row_W).float(), alpha=weight)


def differ(words_KPW: Tensor, cut: slice) -> Tensor:
    """(K, K) the number of weights in a slice of words in which two ballots differ, in any plane."""
    part_KPW = words_KPW[:, :, cut].contiguous()
    counts_KK = part_KPW.new_zeros((len(part_KPW), len(part_KPW)))
    for k, ballot_PW in enumerate(part_KPW):
        counts_KK[k, :k] = popcount(union(part_KPW[:k] ^ ballot_PW)).sum(1)
    return counts_KK + counts_KK.T


def carry_save(digits: Sequence[Tensor], rows: Sequence[Tensor]) -> list[Tensor]:
    """Add rows of single bits to bit-sliced numbers, lowest digit first.

    Two rows at a time: three bits of one digit add up to a bit of that digit and a carry to the next.
    """
    sums = []
    for total in digits:
        carries = []
        for x, y in zip(rows[::2], rows[1::2], strict=False):
            # total + x + y = (total ^ x ^ y) + 2 majority(total, x, y)
            either = total ^ x
            carries.append((total & x) | (either & y))
            total = either ^ y
        if len(rows) % 2:
            carries.append(total & rows[-1])
            total = total ^ rows[-1]
        sums.append(total)
        rows = carries
    return sums


def popcount(x: Tensor) -> Tensor:
    """The number of set bits of each word: sums of neighbouring bits, then of pairs, fours and bytes."""
    x = x - (x >> 1 & 0x5555555555555555)
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333)
    x = x + (x >> 4) & 0x0F0F0F0F0F0F0F0F
    return x * 0x0101010101010101 >> 56


def union(words_KPW: Tensor) -> Tensor:
    """(K, W) the bits that are set in any plane."""
    first, *others = words_KPW.unbind(1)
    for plane_KW in others:
        first = first | plane_KW
    return first


def rest(words_KPW: Tensor) -> Tensor:
    """(K, W) the bits that are set in no plane."""
    if words_KPW.device.type == "cpu":
        return torch.from_numpy(~np.bitwise_or.reduce(words_KPW.numpy(), 1))
    return ~union(words_KPW)


def pack_bits(votes_D: Tensor, value: int) -> Tensor:
    """Where votes have a value, as bits: eight per byte, the first highest."""
    if votes_D.device.type == "cpu":
        return torch.from_numpy(np.packbits(votes_D.numpy() == value))
    bits = torch.nn.functional.pad((votes_D == value).to(torch.uint8), (0, -len(votes_D) % 8)).view(-1, 8)
    return (bits << _shifts(votes_D.device)).sum(1, dtype=torch.uint8)


def unpack_bits(row_W: Tensor) -> Tensor:
    """The bits of words, one per byte."""
    packed = row_W.view(torch.uint8)
    if row_W.device.type == "cpu":
        return torch.from_numpy(np.unpackbits(packed.numpy()))
    return (packed[:, None] >> _shifts(row_W.device) & 1).flatten()


def _shifts(device: torch.device) -> Tensor:
    return torch.arange(7, -1, -1, dtype=torch.uint8, device=device)


def _write(bytes_GD: Tensor, digits: Sequence[Tensor]) -> None:
    """Transpose squares of 8 x 8 bits: eight digits of eight weights become one byte for each weight."""
    for g, byte_D in enumerate(bytes_GD):
        square = torch.zeros_like(digits[0].view(torch.uint8), dtype=torch.int64)
        for p, digit in enumerate(digits[8 * g : 8 * g + 8]):
            square |= digit.view(torch.uint8).long() << 56 - 8 * p
        for shift, mask in TRANSPOSE:  # swap the corners of the 8 x 8, of each 4 x 4, of each 2 x 2
            swap = (square >> shift ^ square) & mask
            square ^= swap ^ swap << shift
        byte_D[:] = square.view(torch.uint8)
