"""Whole numbers modulo a power of two as bit planes: added 32 at a time by logical operations, on any device.

Plane i has bit i of every number, eight numbers a byte, the first number highest, in words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedvote.errors import WireError
from fedvote.packed import plain

AT_A_TIME = 2**16  # words of a plane: a sum's planes stay in a processor's cache


def words_of(count: int) -> int:
    """Words of a plane of this many numbers."""
    return -(-count // 32)


def nbytes(count: int, bits: int) -> int:
    """Bytes of this many numbers on the wire: whole bytes a plane."""
    return bits * -(-count // 8)


def bits_for(largest: int) -> int:
    """M: the smallest number of bits with 2^M above the largest sum."""
    return max(1, largest.bit_length())


def to_planes(numbers_n: Tensor, bits: int) -> Tensor:
    """(bits, words) int32, of whole numbers from 0 to 2^bits - 1."""
    planes_MW = numbers_n.new_zeros((bits, words_of(len(numbers_n))), dtype=torch.int32)
    largest = int(numbers_n.max()) if len(numbers_n) else 0
    for plane, row_W in enumerate(planes_MW[: largest.bit_length()]):
        row_W.view(torch.uint8)[: -(-len(numbers_n) // 8)] = plain.pack_bits(numbers_n >> plane & 1, 1)
    return planes_MW


def to_numbers(planes_MW: Tensor, count: int) -> Tensor:
    """(count,) the numbers; int32."""
    numbers_n = torch.zeros(count, dtype=torch.int32, device=planes_MW.device)
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=planes_MW.device)
    for plane, row_W in enumerate(planes_MW):
        bytes_B = row_W.view(torch.uint8)
        if bytes_B.device.type == "cpu":
            bits_n = torch.from_numpy(np.unpackbits(bytes_B.numpy(), count=count))
        else:
            bits_n = (bytes_B[:, None] >> shifts & 1).flatten()[:count]
        numbers_n |= bits_n.to(torch.int32) << plane
    return numbers_n


def to_bytes(planes_MW: Tensor, count: int) -> bytes:
    """The planes one after the other, each cut to whole bytes."""
    size = -(-count // 8)
    return planes_MW.view(torch.uint8)[:, :size].cpu().contiguous().numpy().tobytes()


def from_bytes(payload: bytes, count: int, bits: int, device: torch.device | str = "cpu") -> Tensor:
    """The planes in a payload; WireError if it has another length."""
    if len(payload) != nbytes(count, bits):
        raise WireError(f"{len(payload)} bytes, expected {nbytes(count, bits)}: {count} whole numbers of {bits} bits")
    planes_MW = torch.zeros((bits, words_of(count)), dtype=torch.int32)
    rows_MB = np.frombuffer(payload, np.uint8).reshape(bits, -1)
    planes_MW.view(torch.uint8)[:, : rows_MB.shape[1]] = torch.from_numpy(rows_MB.copy())
    return planes_MW.to(device)


def pieces(planes_MW: Tensor) -> range:
    """The first words of pieces that are added one at a time."""
    words = planes_MW.shape[1]
    return range(0, words, AT_A_TIME if planes_MW.device.type == "cpu" else max(words, 1))


def add(total_MW: Tensor, other_MW: Tensor) -> None:
    """total + other modulo 2^M, in place."""
    starts = pieces(total_MW)
    for start in starts:
        cut = slice(start, start + starts.step)
        add_piece(total_MW[:, cut], other_MW[:, cut].unbind())


def add_piece(total_MP: Tensor, planes: Sequence[Tensor]) -> None:
    """The same for one piece, plane by plane with a carry."""
    carry_P, differ_P, both_P = total_MP.new_zeros((3, total_MP.shape[1]))
    for a_P, b_P in zip(total_MP, planes, strict=True):
        # sum = a ^ b ^ c,  carry = a if a == b else c
        torch.bitwise_xor(a_P, b_P, out=differ_P)
        torch.bitwise_and(a_P, b_P, out=both_P)
        torch.bitwise_xor(differ_P, carry_P, out=a_P)
        carry_P.bitwise_and_(differ_P).bitwise_or_(both_P)
