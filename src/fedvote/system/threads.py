"""Work that is done one piece a core: what is small goes faster so than every piece on all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_every_core(do: Callable[[Item], Result], items: Sequence[Item], most: int | None = None) -> list[Result]:
    """[do(item) for item in items], on as many threads as there are cores, or `most`; raises what the first one raised.

    Gradients are on in every thread, as they are in a new one.
    """
    cores = torch.get_num_threads()
    many = min(cores, len(items), most or cores)
    if many <= 1:
        return [do(item) for item in items]
    try:
        with ThreadPoolExecutor(many, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(do, items))
    finally:
        torch.set_num_threads(cores)  # for threads that are still to come
