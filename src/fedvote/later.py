"""Lengths that are found in the background: a coder works on the host while the device goes on with the next clients.

One thread does this in the order in which it is asked, so that what is asked may wait for what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

Length = int | Future[int]


def later(length: Callable[[], int]) -> Future[int]:
    """Call it in the background."""
    return _thread().submit(length)


def wait_for(length: Length) -> int:
    """Wait for it, if need be."""
    return length if isinstance(length, int) else length.result()


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="lengths")
