"""Every random number of a run is a function of (seed, round, client, purpose), and of nothing else.

Clients round by the numbers of `shared_random`. These are the same on every device, so the server can draw them, too.
Number i of a stream is a hash of i and the stream's 62 bits: two rounds of Wellons' lowbias32, in 32-bit integers that
wrap around.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SERVER = -1
"""The client number of the server's own random numbers."""

BITS = 24  # of a shared random number: a float32 holds them exactly
FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
MASK = 2**31 - 1
CACHED = 2**17  # numbers that a CPU's cache holds, with all intermediate results


@dataclass(frozen=True)
class Key:
    """The source of random numbers: seed, round and client; every use adds its purpose."""

    seed: int
    round: int = 0
    client: int = SERVER

    def number(self, purpose: str) -> int:
        """63 bits that differ for every key and purpose."""
        text = f"{self.seed}/{self.round}/{self.client}/{purpose}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1

    def torch(self, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
        return torch.Generator(device).manual_seed(self.number(purpose))

    def numpy(self, purpose: str) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(self.number(purpose)))


def shared_random(key: Key, count: int, device: torch.device | str = "cpu") -> Tensor:
    """(count,) whole numbers from 0 to 2^24 - 1, uniformly distributed; int32."""
    return shared_random_at(key, torch.arange(count, dtype=torch.int32, device=device))


def shared_random_at(key: Key, index_D: Tensor) -> Tensor:
    """The shared random numbers at these indices (int32), which they overwrite."""
    number = key.number("rounding")
    for x in index_D.split(CACHED) if index_D.device.type == "cpu" else (index_D,):
        for part in (number & MASK, number >> 31 & MASK):
            scramble(x, part)
        x &= 2**BITS - 1
    return index_D


def scramble(x: Tensor, part: int | Tensor) -> Tensor:
    """One round of lowbias32 on 32-bit integers, which it overwrites, mixed with 31 bits of a key."""
    x ^= part
    x ^= x >> 16 & 0xFFFF
    x *= FACTORS[0]
    x ^= x >> 15 & 0x1FFFF
    x *= FACTORS[1]
    x ^= x >> 16 & 0xFFFF
    return x


def random_rows(keys: Sequence[Key], purpose: str, count: int, device: torch.device | str = "cpu") -> Tensor:
    """(K, count) whole numbers from 0 to 2^24 - 1, a row for each key; int32; the same on every device."""
    numbers = [key.number(purpose) for key in keys]
    parts_K2 = torch.tensor([[number & MASK, number >> 31 & MASK] for number in numbers], dtype=torch.int32)
    rows = torch.arange(count, dtype=torch.int32, device=device).repeat(len(keys), 1)
    for part_K in parts_K2.to(device).unbind(1):
        scramble(rows, part_K[:, None])
    return rows.bitwise_and_(2**BITS - 1)


def as_uniform(numbers_D: Tensor) -> Tensor:
    """Shared random numbers as exact floats in [0, 1)."""
    return numbers_D.float().div_(2**BITS)
