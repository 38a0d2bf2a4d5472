"""Seconds that some work takes, and a block that runs on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fedvote.system.device import synchronise

CPU = torch.device("cpu")


def seconds_of(work: Callable[[], Any], device: torch.device = CPU) -> float:
    """Seconds until the device has finished the work."""
    synchronise(device)
    began = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - began


def cpu_seconds_of(work: Callable[[], Any]) -> float:
    """Seconds that processors spend on the work: on one thread, what a machine with nothing else to do would take."""
    began = time.process_time()
    work()
    return time.process_time() - began


@contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
