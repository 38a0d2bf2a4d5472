"""How much memory this process has, and had at its highest; not a number where there is no /proc."""

from __future__ import annotations

import math
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """The highest is counted from here."""
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
