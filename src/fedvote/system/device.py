"""Which device a run uses, and the arithmetic it uses there: repeatable to the bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fedvote.errors import ConfigError


def find_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device is {name!r}, expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device is cuda, but torch sees no CUDA GPU here; use --device cpu or --device auto")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def half_precision(device: torch.device, precision: str) -> bool:
    """Whether convolutions and products are computed in bfloat16: on a GPU, unless float32 was asked for."""
    if precision == "bfloat16" and device.type == "cpu":
        raise ConfigError("precision is bfloat16, which some CPUs announce but cannot run; use auto or float32 there")
    return device.type == "cuda" and precision != "float32"


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def repeatable() -> Iterator[None]:
    """Deterministic algorithms and no gradients inside; what was set before, after."""
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), memory.fill_uninitialized_memory
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # it would only cost time
    try:
        with torch.no_grad():
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        memory.fill_uninitialized_memory = before[1]
