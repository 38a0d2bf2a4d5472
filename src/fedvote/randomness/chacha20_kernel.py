"""ChaCha20's key stream on a GPU: a Triton kernel in which every lane computes whole blocks in registers."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LANES = 128  # blocks of one program
WORDS = 16  # in a block


def by_kernel(state: Tensor, count: int) -> Tensor:
    """(count,) words as int32; `state`: the cipher's state before block 0, on the GPU."""
    words = torch.empty(count, dtype=torch.int32, device=state.device)
    if count:
        with torch.cuda.device_of(words):
            _write_blocks[(triton.cdiv(count, LANES * WORDS),)](state, words, count, LANES)
    return words


@triton.jit
def _rotated(x, bits: tl.constexpr):
    return (x << bits) | (x >> (32 - bits))


@triton.jit
def _quarter_round(a, b, c, d):
    a += b
    d = _rotated(d ^ a, 16)
    c += d
    b = _rotated(b ^ c, 12)
    a += b
    d = _rotated(d ^ a, 8)
    c += d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _start(state, word: tl.constexpr, lanes: tl.constexpr):
    return tl.full((lanes,), 0, tl.uint32) + tl.load(state + word).to(tl.uint32, bitcast=True)


@triton.jit
def _store(words, place, x, state, word: tl.constexpr, lanes: tl.constexpr, count):
    total = x + _start(state, word, lanes)
    tl.store(words + place + word, total.to(tl.int32, bitcast=True), mask=place + word < count)


@triton.jit
def _write_blocks(state, words, count, lanes: tl.constexpr):
    block = tl.program_id(0) * lanes + tl.arange(0, lanes)
    counter = block.to(tl.uint32)
    x0, x1 = _start(state, 0, lanes), _start(state, 1, lanes)
    x2, x3 = _start(state, 2, lanes), _start(state, 3, lanes)
    x4, x5 = _start(state, 4, lanes), _start(state, 5, lanes)
    x6, x7 = _start(state, 6, lanes), _start(state, 7, lanes)
    x8, x9 = _start(state, 8, lanes), _start(state, 9, lanes)
    x10, x11 = _start(state, 10, lanes), _start(state, 11, lanes)
    x12, x13 = _start(state, 12, lanes) + counter, _start(state, 13, lanes)
    x14, x15 = _start(state, 14, lanes), _start(state, 15, lanes)
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    place = block.to(tl.int64) * 16
    _store(words, place, x0, state, 0, lanes, count)
    _store(words, place, x1, state, 1, lanes, count)
    _store(words, place, x2, state, 2, lanes, count)
    _store(words, place, x3, state, 3, lanes, count)
    _store(words, place, x4, state, 4, lanes, count)
    _store(words, place, x5, state, 5, lanes, count)
    _store(words, place, x6, state, 6, lanes, count)
    _store(words, place, x7, state, 7, lanes, count)
    _store(words, place, x8, state, 8, lanes, count)
    _store(words, place, x9, state, 9, lanes, count)
    _store(words, place, x10, state, 10, lanes, count)
    _store(words, place, x11, state, 11, lanes, count)
    _store(words, place, x12 + counter, state, 12, lanes, count)
    _store(words, place, x13, state, 13, lanes, count)
    _store(words, place, x14, state, 14, lanes, count)
    _store(words, place, x15, state, 15, lanes, count)
