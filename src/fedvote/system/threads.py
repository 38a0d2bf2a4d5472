"""One item per core: faster for small items than every item on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_every_core(do: Callable[[Item], Result], items: Sequence[Item], most: int | None = None) -> list[Result]:
    """[do(item) for item in items], with one thread per core, at most `most` threads.

    The first item that fails raises its error here. New threads have gradients on.
    """
    usual = torch.get_num_threads()
    threads = min(usual, len(items), most or usual)
    if threads <= 1:
        return [do(item) for item in items]
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(do, items))
    finally:
        torch.set_num_threads(usual)  # for later threads
