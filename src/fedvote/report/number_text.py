"""Numbers as text: percent, three digits, bytes, durations, a mean with its spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from fedvote.tasks.goal import Shown

NONE = "\N{EN DASH}"


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.2f}\u202f%"


def spread(shares: Sequence[float], percent: bool = True) -> str:
    """The mean, in percent if asked, with the standard deviation if there are several values."""
    if not shares:
        return ""
    scale, unit = (100, "\u202f%") if percent else (1, "")
    deviation = f" ± {scale * statistics.stdev(shares):.2f}" if len(shares) > 1 else ""
    return f"{scale * statistics.fmean(shares):.2f}{deviation}{unit}"


def writer(shown: Shown) -> Callable[[float | None], str]:
    """The function that writes values of a metric."""
    return percent if shown.percent else decimal


def decimal(value: float | None) -> str:
    """Three significant digits, never as a power of ten."""
    if value is None or not math.isfinite(value):
        return NONE if value is None else str(value)
    places = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(0, places)}f}"


def size(nbytes: float | None) -> str:
    """Bytes as megabytes, or as kilobytes below 0.1 MB."""
    if nbytes is None:
        return NONE
    return f"{decimal(nbytes / 1e6)}\u202fMB" if nbytes >= 1e5 else f"{decimal(nbytes / 1e3)}\u202fkB"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    if seconds < 60:
        return f"{decimal(seconds)}\u202fs"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\u202fmin {rest}\u202fs" if minutes < 60 else f"{minutes // 60}\u202fh {minutes % 60}\u202fmin"


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def last(values: list[float]) -> float | None:
    return values[-1] if values else None
