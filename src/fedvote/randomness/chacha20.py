"""ChaCha20's key stream as random words, the same on every device (RFC 8439).

A CPU takes the words from a library for cryptography, a GPU from a kernel of our own (chacha20_kernel.py). `in_tensors`
is the same in plain tensor operations, for devices that have neither.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from torch import Tensor

NONCE_BYTES = 12
WORDS = 16  # in a block
CONSTANTS = np.frombuffer(b"expand 32-byte k", np.int32)
DOUBLE_ROUNDS = 10
ZEROS = bytes(2**18)  # fits a CPU's cache; the key stream is what the cipher makes of zeros


def key_stream(key: bytes, nonce: bytes, count: int, device: torch.device, block: int = 0) -> Tensor:
    """(count,) words of 32 bits as int32: little-endian, from this block of 16 words on."""
    if device.type == "cpu":
        return by_library(key, nonce, count, block)
    if device.type == "cuda" and _has_triton():
        from fedvote.randomness.chacha20_kernel import by_kernel

        return by_kernel(first_block(key, nonce, block).to(device), count)
    return in_tensors(first_block(key, nonce, block).to(device), count)


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def by_library(key: bytes, nonce: bytes, count: int, block: int = 0) -> Tensor:
    cipher = Cipher(ChaCha20(key, block.to_bytes(4, "little") + nonce), mode=None).encryptor()
    words = np.empty(count, np.int32)
    stream = words.data.cast("B")
    for start in range(0, len(stream), len(ZEROS)):
        part = stream[start : start + len(ZEROS)]
        cipher.update_into(ZEROS[: len(part)], part)
    return torch.from_numpy(words)


def first_block(key: bytes, nonce: bytes, block: int = 0) -> Tensor:
    """(16,) the cipher's state before a block: constants, key, counter, nonce."""
    words = [CONSTANTS, *(np.frombuffer(part, np.int32) for part in (key, block.to_bytes(4, "little"), nonce))]
    return torch.from_numpy(np.concatenate(words))


def in_tensors(state: Tensor, count: int) -> Tensor:
    """The same words by additions, shifts and exclusive ors of int32 tensors, which wrap around."""
    blocks = -(-count // WORDS)
    start = state[:, None].repeat(1, blocks)
    start[12] += torch.arange(blocks, dtype=torch.int32, device=state.device)
    rows = start.view(4, 4, blocks).unbind()
    for _ in range(DOUBLE_ROUNDS):
        rows = _quarter_rounds(*rows)  # of the four columns
        rows = _quarter_rounds(*(row.roll(-shift, 0) for shift, row in enumerate(rows)))  # of the four diagonals
        rows = tuple(row.roll(shift, 0) for shift, row in enumerate(rows))
    return torch.cat(rows).add_(start).T.flatten()[:count]


def _quarter_rounds(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, ...]:
    for left, right in ((16, 12), (8, 7)):
        a = a + b
        d = _rotated(d ^ a, left)
        c = c + d
        b = _rotated(b ^ c, right)
    return a, b, c, d


def _rotated(x: Tensor, bits: int) -> Tensor:
    return x << bits | x >> (32 - bits) & (1 << bits) - 1  # int32's right shift copies the sign: mask it
