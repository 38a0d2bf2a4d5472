"""The device of a run, and arithmetic that is repeatable to the bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fedvote.errors import ConfigError

OFF, WARN, ERROR = 0, 1, 2  # what torch does at an operation that is not deterministic


def find_device(name: str) -> torch.device:
    """The device of this name. `auto`: the GPU if there is one, else the CPU."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device is {name!r}, expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device is cuda, but torch finds no CUDA GPU; use --device cpu or --device auto (in a "
            'program: device="cpu")'
        )
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def half_precision(device: torch.device, precision: str) -> bool:
    """Whether to compute convolutions and products in bfloat16: on a GPU, unless `precision` is float32."""
    if precision == "bfloat16" and device.type == "cpu":
        raise ConfigError("precision is bfloat16, which not every CPU can run; use auto or float32 on a CPU")
    return device.type == "cuda" and precision != "float32"


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def repeatable() -> Iterator[None]:
    """Use deterministic algorithms and no gradients inside; restore the settings afterwards."""
    memory: Any = torch.utils.deterministic
    before = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is not deterministic without it
    _deterministic(ERROR)
    memory.fill_uninitialized_memory = False  # saves time
    try:
        with torch.no_grad():
            yield
    finally:
        _deterministic(before[0])
        memory.fill_uninitialized_memory = before[1]


def _deterministic(mode: int) -> None:
    """Set torch's mode. Its compiler must know it as well, but runs on a GPU alone, and takes a second to import."""
    if torch.cuda.is_available():
        torch.use_deterministic_algorithms(mode != OFF, warn_only=mode == WARN)
    else:
        torch.set_deterministic_debug_mode(mode)
