"""This process's resident memory in bytes, now and at its peak; NaN if there is no /proc."""

from __future__ import annotations

import math
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Reset the peak to the present."""
    if RESET.exists():
        RESET.write_text("5")


def resident() -> float:
    return _bytes("VmRSS")


def peak() -> float:
    return _bytes("VmHWM")


def _bytes(field: str) -> float:
    if not RESET.exists():
        return math.nan
    return 1024.0 * int(next(line for line in STATUS.read_text().splitlines() if line.startswith(field)).split()[1])
