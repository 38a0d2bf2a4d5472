"""One item per core: faster for small items than every item on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_every_core(do: Callable[[Item], Result], items: Sequence[Item], most: int | None = None) -> list[Result]:
    """[do(item) for item in items], with one thread per core, at most `most` threads.

    The first item that fails raises its error here. New threads have gradients on.
    """
    cores = torch.get_num_threads()
    threads = min(cores, len(items), most or cores)
    if threads <= 1:
        return [do(item) for item in items]
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(do, items))
    finally:
        torch.set_num_threads(cores)  # for later threads
