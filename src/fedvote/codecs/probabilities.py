"""Probabilities on which both sides agree to the last bit: positive multiples of 1/65536 that add up to 1.

The first value's share is not sent: it is 1 minus the others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedvote.errors import WireError

UNIT = 1 << 16
Shares = npt.NDArray[np.int64]


def in_units(probabilities: npt.NDArray[np.float64]) -> Shares:
    """Each row of probabilities in whole units: one unit for each value, the rest in proportion.

    Cumulative sums are rounded, not shares, so rounding errors do not add up.
    """
    rest = UNIT - probabilities.shape[1]
    ends = np.minimum(np.rint(probabilities.cumsum(1) * rest), rest).astype(np.int64)
    ends[:, -1] = rest
    shares: Shares = 1 + np.diff(ends, axis=1, prepend=0)
    return shares


def write_units(shares: Shares) -> bytes:
    return shares[:, 1:].astype("<u2").tobytes()


def read_units(payload: bytes, rows: int, values: int) -> tuple[Shares, bytes]:
    """The shares at the front of a payload, and the bytes after them."""
    nbytes = 2 * rows * (values - 1)
    if len(payload) < nbytes:
        raise WireError(f"{len(payload)} bytes are too few for {rows} rows of {values} shares")
    others = np.frombuffer(payload[:nbytes], "<u2").astype(np.int64).reshape(rows, values - 1)
    first = UNIT - others.sum(1, keepdims=True)
    if (others < 1).any() or (first < 1).any():
        raise WireError("shares are not positive numbers that add up to 65536")
    return np.concatenate([first, others], 1), payload[nbytes:]
