"""What a server can tell of a vote before it arrives: the client's lot, and the soft vote that the client started from.

A binary vote is +1 if the client's lot u is below its p. The server knows u (lots.py) and the p that all started from,
and a turn moves p only so far: a vote is in doubt where u is close to p, and almost certain elsewhere. Closeness is in
odds, in which local training moves all weights about equally far: z = log2 (u / (1 - u)) - log2 (p / (1 - p)), in
steps of an octave, or a quarter of one where there are votes enough. Ternary votes are sign(w) if u < |w|: the same
with (1 + u) / 2 and (1 + |w|) / 2, apart for each sign of w.

Logarithms are read off the leading bits of whole numbers, so that all machines agree on them. See docs/wire-format.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedvote.lots import BITS
from fedvote.quantize import BINARY, Alphabet

ONE = 2**20  # what stands for the probability 1
LEAST = 2**10  # and for the smallest that is told from 0
MANY = 2**17  # votes, that are worth finer steps


def contexts(
    level_D: Tensor, levels: int, lots_D: Tensor, alphabet: Alphabet
) -> tuple[Tensor, npt.NDArray[np.float64]]:
    """Each vote's context, and how likely each value is in each of them before any vote is seen."""
    fine, limit = (2, 24) if len(level_D) >= MANY else (0, 6)
    top, level_D, lot_D = levels - 1, level_D.long(), 2 * lots_D.long() + 1
    if alphabet == BINARY:
        p_D, whole = level_D * ONE // top, 2 ** (BITS + 1)
    else:
        p_D, whole = (top + (2 * level_D - top).abs()) * ONE // (2 * top), 2 ** (BITS + 2)
        lot_D = lot_D + whole // 2
    p_D = p_D.clamp(LEAST, ONE - LEAST)

    # z = log2 (u (1 - p)) - log2 ((1 - u) p)
    z_D = steps(lot_D * (ONE - p_D), fine) - steps((whole - lot_D) * p_D, fine)
    context_D = z_D.clamp(-limit, limit) + limit
    if alphabet != BINARY:
        context_D = 3 * context_D + (2 * level_D - top).sign() + 1
    return context_D.to(torch.int16), expected(limit, fine, alphabet)


def steps(x: Tensor, fine: int) -> Tensor:
    """log2 of whole numbers below 2^53, in steps of 2^-fine, and straight between powers of two."""
    return x.double().view(torch.int64) >> (52 - fine)


def expected(limit: int, fine: int, alphabet: Alphabet) -> npt.NDArray[np.float64]:
    """(C, V) that the vote is the one the lot and the start make, but for a doubt that halves with every octave."""
    rows = []
    for z in range(-limit, limit + 1):
        doubt = max(2.0 ** -(abs(z) / 2**fine) / 2, 2.0**-10)
        if alphabet == BINARY:
            rows.append([doubt, 1 - doubt] if z < 0 else [1 - doubt, doubt])
            continue
        for side in (-1, 0, 1):
            # below its lot a vote is 0; doubt is about the side that the start is on, or about both
            nearly, rarely = (doubt * 15 / 16, doubt / 16) if side else (doubt / 2, doubt / 2)
            if z < 0 and side:
                rows.append([1 - doubt, nearly, rarely] if side < 0 else [rarely, nearly, 1 - doubt])
            else:
                rows.append([nearly, 1 - doubt, rarely] if side < 0 else [rarely, 1 - doubt, nearly])
    return np.array(rows)
