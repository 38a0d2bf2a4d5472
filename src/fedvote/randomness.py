"""Every random number of a run: a function of (seed, round, client, purpose), and of nothing else.

`shared_random` makes the numbers by which clients round. They are the same on every device, so the server can draw
them as well. Counter-based: number i of a stream is a hash of i and of the stream's 62 bits, by two rounds of Wellons'
lowbias32. All arithmetic is that of 32-bit integers, which wraps around.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SERVER = -1
"""The client number of whatever is drawn on the server."""

BITS = 24  # as many as a float32 holds
FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
MASK = 2**31 - 1
CACHED = 2**17  # of which a CPU keeps all that is made on the way


@dataclass(frozen=True)
class Key:
    """Where every random number comes from: (seed, round, client, purpose), and nothing else."""

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
    """(count,) whole numbers from 0 to 2^24 - 1, evenly distributed; int32."""
    return shared_random_at(key, torch.arange(count, dtype=torch.int32, device=device))


def shared_random_at(key: Key, places_D: Tensor) -> Tensor:
    """Those of some places, which are overwritten."""
    number, lots_D = key.number("rounding"), places_D
    for x in lots_D.split(CACHED) if lots_D.device.type == "cpu" else (lots_D,):
        for part in (number & MASK, number >> 31 & MASK):
            x ^= part
            x ^= x >> 16 & 0xFFFF
            x *= FACTORS[0]
            x ^= x >> 15 & 0x1FFFF
            x *= FACTORS[1]
            x ^= x >> 16 & 0xFFFF
        x &= 2**BITS - 1
    return lots_D


def as_uniform(lots_D: Tensor) -> Tensor:
    """The same as numbers in [0, 1), without rounding."""
    return lots_D.float().div_(2**BITS)
