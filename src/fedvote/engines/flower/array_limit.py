"""A limit on the memory that the arrays of one reply may take.

Flower sends an array in chunks, and equal chunks only once: a few bytes on the wire can become gigabytes on the server.
A proxy's limit does not see that. So we add up the chunks before any array is made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from flwr.app import Array

from fedvote.engines.flower.flower_internals import Chunks, inflate_arrays_by, inflated_nbytes
from fedvote.errors import WireError

LONGEST_LIST = 2**20  # bytes of an array's list of chunks: enough for 70 GiB of chunks
_limit = threading.local()  # .nbytes: bytes that this thread may still receive; not set: no limit


@contextmanager
def at_most(nbytes: int) -> Iterator[None]:
    """Limit the total bytes of arrays that this thread receives in the block; WireError beyond."""
    _limit.nbytes = nbytes
    try:
        yield
    finally:
        del _limit.nbytes


def _inflate(array: bytes, chunks: Chunks) -> Array:
    if hasattr(_limit, "nbytes"):
        _limit.nbytes -= _checked_nbytes(array, chunks, _limit.nbytes)
    return Array.inflate(array, cast(Any, chunks))


def _checked_nbytes(array: bytes, chunks: Chunks, limit: int) -> int:
    """Bytes that an array will take; WireError if they exceed the limit."""
    if len(array) > LONGEST_LIST:
        raise WireError(f"an array whose list of chunks has {len(array)} bytes, expected {LONGEST_LIST} at most")
    nbytes = inflated_nbytes(array, chunks)
    if nbytes > limit:
        raise WireError(f"an array of {nbytes} bytes, expected {limit} at most")
    return nbytes


inflate_arrays_by(_inflate)
