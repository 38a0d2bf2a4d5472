"""The loops of `plain`, compiled by numba for the CPU. Words are uint64. Each loop fits the first-level cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
F = TypeVar("F", bound=Callable[..., Any])

BLOCK = 512  # words of each row that fit the cache
WEIGHED = 64  # words whose 64 sums each fit the cache
U = np.uint64
BIT_OF_WEIGHT = U(1) << (np.arange(64, dtype=U) ^ U(7))  # the first vote of a byte is its highest bit


def _jit(function: F) -> F:
    return cast(F, numba.njit(nogil=True, cache=True)(function))


def words_at_a_time(rows: Tensor) -> int:
    return 2**11


def count(bytes_GD: Tensor, rows_KW: Tensor, cut: slice) -> None:
    _count(_words(bytes_GD), _words(rows_KW), cut.start, cut.stop, max(3, len(rows_KW).bit_length()))


def add(digits_PW: Tensor, rows_KW: Tensor, cut: slice) -> None:
    _add(_words(digits_PW), _words(rows_KW), cut.start, cut.stop)


def expand(bytes_GD: Tensor, digits_PW: Tensor, cut: slice) -> None:
    _expand(_words(bytes_GD), 0, _words(digits_PW).view(np.uint8), 8 * cut.start, 8 * (cut.stop - cut.start))


def weigh(total_D: Tensor, rows_KW: Tensor, cut: slice, weights_K: Tensor) -> None:
    _weigh(total_D.numpy().reshape(-1, 64), _words(rows_KW), cut.start, cut.stop, weights_K.numpy(), BIT_OF_WEIGHT)


def differ(words_KPW: Tensor, cut: slice) -> Tensor:
    K, P, W = words_KPW.shape
    counts_KK = np.zeros((K, K), np.int64)
    _differ(counts_KK, _words(words_KPW).reshape(K, P * W), P, cut.start, cut.stop)
    return torch.from_numpy(counts_KK + counts_KK.T)


def _words(x: Tensor) -> Words:
    return x.numpy().view(U)


@_jit
def _count(lanes: Words, rows: Words, start: int, stop: int, places: int) -> None:
    digits = np.empty((places, BLOCK), U)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        digits[:] = U(0)
        _add_block(digits, 0, rows, begin, end)
        _expand(lanes, 8 * (begin - start), digits.view(np.uint8), 0, 8 * (end - begin))


@_jit
def _add(digits: Words, rows: Words, start: int, stop: int) -> None:
    for begin in range(start, stop, BLOCK):
        _add_block(digits, begin, rows, begin, min(begin + BLOCK, stop))


@_jit
def _add_block(digits: Words, at: int, rows: Words, begin: int, end: int) -> None:
    """Add eight rows at a time: sum their bits to ones, twos and fours, then carry the eights."""
    m = end - begin
    a, b, c, d, zeros = np.empty(m, U), np.empty(m, U), np.empty(m, U), np.empty(m, U), np.zeros(m, U)
    ones, twos, fours = digits[0, at : at + m], digits[1, at : at + m], digits[2, at : at + m]
    for k in range(0, len(rows), 8):
        _carry_save(ones, _row(rows, k, begin, end, zeros), _row(rows, k + 1, begin, end, zeros), a)
        _carry_save(ones, _row(rows, k + 2, begin, end, zeros), _row(rows, k + 3, begin, end, zeros), b)
        _carry_save(twos, a, b, c)
        _carry_save(ones, _row(rows, k + 4, begin, end, zeros), _row(rows, k + 5, begin, end, zeros), a)
        _carry_save(ones, _row(rows, k + 6, begin, end, zeros), _row(rows, k + 7, begin, end, zeros), b)
        _carry_save(twos, a, b, d)
        _carry_save(fours, c, d, a)
        for p in range(3, len(digits)):
            _carry(digits[p, at : at + m], a)


@_jit
def _row(rows: Words, k: int, begin: int, end: int, zeros: Words) -> Words:
    return rows[k, begin:end] if k < len(rows) else zeros


@_jit
def _carry_save(total: Words, x: Words, y: Words, carry: Words) -> None:
    # total + x + y = (total ^ x ^ y) + 2 majority(total, x, y)
    for j in range(len(total)):
        t, u, v = total[j], x[j], y[j]
        either = t ^ u
        carry[j] = (t & u) | (either & v)
        total[j] = either ^ v


@_jit
def _carry(total: Words, carry: Words) -> None:
    for j in range(len(total)):
        t, u = total[j], carry[j]
        total[j] = t ^ u
        carry[j] = t & u


@_jit
def _expand(lanes: Words, lanes_at: int, digits: Bytes, digits_at: int, size: int) -> None:
    zeros = np.zeros((1, size), np.uint8)
    for g in range(len(lanes)):
        p = 8 * g
        _transpose(
            lanes[g, lanes_at : lanes_at + size],
            _byte(digits, p, digits_at, zeros),
            _byte(digits, p + 1, digits_at, zeros),
            _byte(digits, p + 2, digits_at, zeros),
            _byte(digits, p + 3, digits_at, zeros),
            _byte(digits, p + 4, digits_at, zeros),
            _byte(digits, p + 5, digits_at, zeros),
            _byte(digits, p + 6, digits_at, zeros),
            _byte(digits, p + 7, digits_at, zeros),
        )


@_jit
def _byte(digits: Bytes, p: int, at: int, zeros: Bytes) -> Bytes:
    return digits[p, at : at + zeros.size] if p < len(digits) else zeros[0, :]


@_jit
def _transpose(
    lanes: Words, p0: Bytes, p1: Bytes, p2: Bytes, p3: Bytes, p4: Bytes, p5: Bytes, p6: Bytes, p7: Bytes
) -> None:
    """Transpose 8 x 8 bits: eight digits of eight weights become one byte for each weight."""
    for j in range(len(lanes)):
        x = U(p0[j]) << U(56) | U(p1[j]) << U(48) | U(p2[j]) << U(40) | U(p3[j]) << U(32)
        x |= U(p4[j]) << U(24) | U(p5[j]) << U(16) | U(p6[j]) << U(8) | U(p7[j])
        swap = (x >> U(36) ^ x) & U(0x0F0F0F0F)  # corners of the 8 x 8
        x ^= swap ^ swap << U(36)
        swap = (x >> U(18) ^ x) & U(0x0000333300003333)  # of each 4 x 4
        x ^= swap ^ swap << U(18)
        swap = (x >> U(9) ^ x) & U(0x0055005500550055)  # of each 2 x 2
        lanes[j] = x ^ swap ^ swap << U(9)


@_jit
def _weigh(total: Floats, rows: Words, start: int, stop: int, weights: Floats, bits: Words) -> None:
    K, zeros = len(rows), np.zeros(WEIGHED, U)
    padded = np.zeros(-(-K // 4) * 4, np.float32)
    padded[:K] = weights
    for begin in range(start, stop, WEIGHED):
        end = min(begin + WEIGHED, stop)
        part = total[begin - start : end - start]
        part[:] = np.float32(0)
        for k in range(0, K, 4):
            _weigh_four(
                part,
                _row(rows, k, begin, end, zeros),
                _row(rows, k + 1, begin, end, zeros),
                _row(rows, k + 2, begin, end, zeros),
                _row(rows, k + 3, begin, end, zeros),
                padded[k : k + 4],
                bits,
            )


@_jit
def _weigh_four(total: Floats, r0: Words, r1: Words, r2: Words, r3: Words, weights: Floats, bits: Words) -> None:
    """Add row after row, in the order of one addition per vote. Four rows at once save three quarters of the loads."""
    w0, w1, w2, w3, nothing = weights[0], weights[1], weights[2], weights[3], np.float32(0)
    for j in range(len(total)):
        x0, x1, x2, x3, sums = r0[j], r1[j], r2[j], r3[j], total[j]
        for i in range(64):
            bit = bits[i]
            s = sums[i] + (w0 if x0 & bit != U(0) else nothing)
            s += w1 if x1 & bit != U(0) else nothing
            s += w2 if x2 & bit != U(0) else nothing
            sums[i] = s + (w3 if x3 & bit != U(0) else nothing)


@_jit
def _differ(counts: npt.NDArray[np.int64], rows: Words, planes: int, start: int, stop: int) -> None:
    K, W = len(rows), rows.shape[1] // planes
    either = np.empty(BLOCK, U)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for k in range(K):
            for other in range(k):
                _xor(either[: end - begin], rows[k, begin:end], rows[other, begin:end])
                for p in range(1, planes):
                    _or_xor(
                        either[: end - begin],
                        rows[k, p * W + begin : p * W + end],
                        rows[other, p * W + begin : p * W + end],
                    )
                counts[k, other] += _ones(either[: end - begin])


@_jit
def _xor(either: Words, x: Words, y: Words) -> None:
    for j in range(len(either)):
        either[j] = x[j] ^ y[j]


@_jit
def _or_xor(either: Words, x: Words, y: Words) -> None:
    for j in range(len(either)):
        either[j] |= x[j] ^ y[j]


@_jit
def _ones(words: Words) -> np.int64:
    total = U(0)
    for j in range(len(words)):
        x = words[j]  # LLVM recognises these lines as popcount
        x = x - (x >> U(1) & U(0x5555555555555555))
        x = (x & U(0x3333333333333333)) + (x >> U(2) & U(0x3333333333333333))
        x = x + (x >> U(4)) & U(0x0F0F0F0F0F0F0F0F)
        total += x * U(0x0101010101010101) >> U(56)
    return np.int64(total)
