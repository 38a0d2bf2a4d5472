"""Contexts of votes: what the server knows about a vote in advance, from shared randomness and the last soft vote.

A binary vote is +1 if the client's shared random number u is below its p. The server knows u (randomness.py) and the p
that all clients started from. Local training moves p only so far: a vote is in doubt where u is close to p, and almost
certain elsewhere. Closeness is a difference of log odds, in which training moves all weights about equally far:
z = log2 (u / (1 - u)) - log2 (p / (1 - p)), in steps of an octave, or a quarter of one if there are many votes.
A ternary vote is sign(w) if u < |w|: the same with (1 + u) / 2 and (1 + |w|) / 2, separately for each sign of w.

All arithmetic is in whole numbers, the first bits of u and p, so all machines agree. See docs/wire-format.md.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedvote.quantize import BINARY, Alphabet
from fedvote.randomness import BITS

U_BITS, P_BITS = 12, 10  # how many first bits of u and p count
MANY = 2**17  # votes: from here on, finer steps are worth it

Expected = npt.NDArray[np.float64]


def contexts(
    level_D: Tensor, levels: int, numbers_D: Tensor, alphabet: Alphabet, values_L: Expected | None = None
) -> tuple[Tensor, Expected]:
    """Each vote's context, and the expected probability of each value in each context.

    `values_L`: 2 p - 1 for each level, if levels are not spaced evenly.
    """
    fine, limit = (2, 24) if len(level_D) >= MANY else (0, 6)
    p_L, side_L = (torch.from_numpy(values).to(level_D.device) for values in of_levels(levels, alphabet, values_L))
    index_D = level_D.int()
    entry_D = p_L.index_select(0, index_D).bitwise_left_shift_(U_BITS).bitwise_or_(numbers_D >> (BITS - U_BITS))
    context_D = table(alphabet, fine, limit, level_D.device).index_select(0, entry_D)
    if alphabet != BINARY:
        context_D = 3 * context_D + side_L.index_select(0, index_D)
    return context_D, expected(limit, fine, alphabet)


def by_random_number(numbers_D: Tensor) -> tuple[Tensor, Expected]:
    """The same for values -1, 0 and +1 that are not 0 where u is below a threshold that the server does not know."""
    fine = 2 if len(numbers_D) >= MANY else 0

    # log2 (U + 1), the octave of u: a float's exponent and the first bits of its mantissa
    context_D = ((numbers_D + 1).float().view(torch.int32) >> (23 - fine)) - (127 << fine)
    return context_D.to(torch.uint8), np.tile([0.25, 0.5, 0.25], ((BITS << fine) + 1, 1))


def of_levels(
    levels: int, alphabet: Alphabet, values_L: Expected | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """For each level: the first bits of p, or of (1 + |w|) / 2, and the sign of w plus 1."""
    # w = offset / top, in whole numbers
    top, offset_L = levels - 1, 2 * np.arange(levels) - (levels - 1)
    if values_L is not None:
        top, offset_L = 2**20, np.rint(values_L * 2**20).astype(np.int64)
    p_L = ((top + (offset_L if alphabet == BINARY else abs(offset_L))) << P_BITS) // (2 * top)
    return p_L.clip(1, 2**P_BITS - 1).astype(np.int32), (np.sign(offset_L) + 1).astype(np.uint8)


@lru_cache(maxsize=8)
def table(alphabet: Alphabet, fine: int, limit: int, device: torch.device) -> Tensor:
    """z, counted from 0, by the first bits of p, then by those of u."""
    p_PU = np.arange(2**P_BITS)[:, None]
    u_PU = 2 * np.arange(2**U_BITS)[None] + 1
    whole = 2 ** (U_BITS + 1)
    if alphabet != BINARY:
        u_PU, whole = u_PU + whole, 2 * whole

    # z = log2 (u (1 - p)) - log2 ((1 - u) p)
    z_PU = steps(u_PU * (2**P_BITS - p_PU), fine) - steps(np.maximum((whole - u_PU) * p_PU, 1), fine)
    return torch.from_numpy((z_PU.clip(-limit, limit) + limit).astype(np.uint8)).flatten().to(device)


def steps(x: npt.NDArray[np.int64], fine: int) -> npt.NDArray[np.int64]:
    """log2 of whole numbers, in steps of 2^-fine, linear between powers of two."""
    return x.astype(np.float64).view(np.int64) >> (52 - fine)


def expected(limit: int, fine: int, alphabet: Alphabet) -> Expected:
    """(C, V) probabilities: u and the last soft vote predict the vote, up to a doubt that halves with every octave."""
    rows = []
    for z in range(-limit, limit + 1):
        doubt = max(2.0 ** -(abs(z) / 2**fine) / 2, 2.0**-10)
        if alphabet == BINARY:
            rows.append([doubt, 1 - doubt] if z < 0 else [1 - doubt, doubt])
            continue
        for side in (-1, 0, 1):
            # u above |w| predicts 0; the doubt goes to the start's sign and 0, or evenly to both signs
            second, third = (doubt * 15 / 16, doubt / 16) if side else (doubt / 2, doubt / 2)
            if z < 0 and side:
                rows.append([1 - doubt, second, third] if side < 0 else [third, second, 1 - doubt])
            else:
                rows.append([second, 1 - doubt, third] if side < 0 else [third, 1 - doubt, second])
    return np.array(rows)
