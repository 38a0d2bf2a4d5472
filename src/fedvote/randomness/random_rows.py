"""Random whole numbers that are the same on every device, for many keys at once: Wellons' lowbias32 as a hash.

Number i of a key is a hash of i and the key's 62 bits: two rounds, in 32-bit integers that wrap around. These numbers
are no secret: everybody who knows the seed can draw them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.randomness.key import Key
from fedvote.randomness.shared_random import BITS

FACTORS = (0x7FEB352D, 0x846CA68B - 2**32)
MASK = 2**31 - 1


def random_rows(keys: Sequence[Key], purpose: str, count: int, device: torch.device | str = "cpu") -> Tensor:
    """(K, count) whole numbers from 0 to 2^24 - 1, a row for each key; int32."""
    numbers = [key.number(purpose) for key in keys]
    parts_K2 = torch.tensor([[number & MASK, number >> 31 & MASK] for number in numbers], dtype=torch.int32)
    rows = torch.arange(count, dtype=torch.int32, device=device).repeat(len(keys), 1)
    for part_K in parts_K2.to(device).unbind(1):
        scramble(rows, part_K[:, None])
    return rows.bitwise_and_(2**BITS - 1)


def scramble(x: Tensor, part: int | Tensor) -> Tensor:
    """One round of the hash on 32-bit integers, which it overwrites, mixed with 31 bits of a key."""
    x ^= part
    x ^= x >> 16 & 0xFFFF
    x *= FACTORS[0]
    x ^= x >> 15 & 0x1FFFF
    x *= FACTORS[1]
    x ^= x >> 16 & 0xFFFF
    return x
