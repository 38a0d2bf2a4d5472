"""A process's resident memory in bytes, now and at its peak; NaN if there is no /proc. Default: this process."""

from __future__ import annotations

import math
from pathlib import Path


def forget_peak(process: int | str = "self") -> None:
    """Reset the peak to the present."""
    if (reset := Path(f"/proc/{process}/clear_refs")).exists():
        reset.write_text("5")


def resident(process: int | str = "self") -> float:
    return _bytes("VmRSS", process)


def peak(process: int | str = "self") -> float:
    return _bytes("VmHWM", process)


def _bytes(field: str, process: int | str) -> float:
    status = Path(f"/proc/{process}/status")
    if not Path(f"/proc/{process}/clear_refs").exists():
        return math.nan
    return 1024.0 * int(next(line for line in status.read_text().splitlines() if line.startswith(field)).split()[1])
