"""The random numbers that clients round by: the same on every device, so that a server can draw them as well.

Counter-based: number i of a stream is a hash of i and of the stream's 62 bits, by two rounds of Wellons' lowbias32.
All arithmetic is that of 32-bit integers, which wraps around.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedvote.core import Key

BITS = 24  # as many as a float32 holds
FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
MASK = 2**31 - 1
CACHED = 2**17  # of which a CPU keeps all that is made on the way


def lots(key: Key, count: int, device: torch.device | str = "cpu") -> Tensor:
    """(count,) whole numbers from 0 to 2^24 - 1, evenly distributed; int32."""
    return lots_at(key, torch.arange(count, dtype=torch.int32, device=device))


def lots_at(key: Key, places_D: Tensor) -> Tensor:
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


def uniform(lots_D: Tensor) -> Tensor:
    """The same as numbers in [0, 1), without rounding."""
    return lots_D.float().div_(2**BITS)
