"""Shared random numbers: clients round by them, and the server draws the same ones. Nobody else can.

Number i is word i of ChaCha20's key stream (RFC 8439), modulo 2^24. The cipher's key is the client's secret, its nonce
is the round, and its block counter starts at 0. Nobody who knows some of the numbers can compute another one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedvote.randomness.chacha20 import NONCE_BYTES, key_stream
from fedvote.randomness.key import Key

BITS = 24  # of a shared random number: a float32 holds them exactly


def shared_random(key: Key, count: int, device: torch.device | str = "cpu") -> Tensor:
    """(count,) whole numbers from 0 to 2^24 - 1, uniformly distributed; int32."""
    nonce = key.round.to_bytes(NONCE_BYTES, "little")
    return key_stream(key.rounding_key, nonce, count, torch.device(device)).bitwise_and_(2**BITS - 1)


def shared_random_at(key: Key, index_n: Tensor) -> Tensor:
    """The shared random numbers at these indices, on their device."""
    count = int(index_n.max()) + 1 if len(index_n) else 0
    return shared_random(key, count, index_n.device).index_select(0, index_n)


def as_uniform(numbers_D: Tensor) -> Tensor:
    """Shared random numbers as exact floats in [0, 1)."""
    return numbers_D.float().div_(2**BITS)
