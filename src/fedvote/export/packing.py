"""Pack weights that are votes times one scale per output: a byte holds eight binary or five ternary votes.

Folding batch norm into a layer scales the votes of each output by one number: w = s · v, v in {-1, 0, 1}. Packing
recovers s and v without loss. Other weights are not packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS: NDArray[np.int8] = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int8) * 2 - 1
"""(256, 8): the binary votes of every byte, the first in its highest bit."""
PLACES = 3 ** np.arange(4, -1, -1)
TRITS: NDArray[np.int8] = (np.arange(243)[:, None] // PLACES % 3).astype(np.int8) - 1
"""(243, 5): the ternary votes of every byte, the first in its highest place."""


@dataclass(frozen=True)
class Packed:
    """A packed weight: each byte is a row of the table; the rows, joined and cut to the shape, times the scale."""

    bytes: NDArray[np.uint8]
    table: NDArray[np.int8]
    shape: tuple[int, ...]
    scale: NDArray[Any]  # one number per output, with the weight's rank and dtype
    axis: int  # of the outputs

    @property
    def votes(self) -> NDArray[np.int8]:
        flat = self.table[self.bytes].reshape(-1)
        return flat[: int(np.prod(self.shape))].reshape(self.shape)

    @property
    def nbytes(self) -> int:
        return self.bytes.nbytes + self.scale.nbytes


def pack(weight: NDArray[Any], axis: int | None = None, grouped: bool = False) -> Packed | None:
    """The packed weight; None if it is not made of votes, or not smaller when packed.

    `axis`: of the outputs, if known; `grouped`: the first axis is of groups, each with its own outputs.
    """
    if not np.isfinite(weight).all():
        return None
    # the output axis of convolutions, transposed convolutions and matrix products
    for output in (0, 1, weight.ndim - 1) if axis is None else (axis,):
        others = tuple(axis for axis in range(grouped, weight.ndim) if axis != output)
        scale = np.abs(weight).max(axis=others, keepdims=True, initial=0)
        votes = np.sign(weight).astype(np.int8)
        if np.array_equal(votes * scale, weight):
            packed = Packed(*pack_votes(votes), weight.shape, scale, output)
            return packed if packed.nbytes < weight.nbytes else None
    return None


def pack_votes(votes: NDArray[np.int8]) -> tuple[NDArray[np.uint8], NDArray[np.int8]]:
    """Bytes, and the table of the votes in every byte: BITS, or TRITS if there are zeros."""
    flat = votes.reshape(-1)
    if flat.all():
        return np.packbits(flat > 0), BITS
    digits = np.pad(flat + 1, (0, -flat.size % len(PLACES))).reshape(-1, len(PLACES))
    return (digits @ PLACES).astype(np.uint8), TRITS
