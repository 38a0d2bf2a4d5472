"""Numbers as text: percent, three digits, bytes, durations, a mean with its spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from fedvote.tasks.shown_metric import Shown

NONE = "\N{EN DASH}"
LEAST, MOST = 1e-9, 1e12  # beyond them, a number is written as a power of ten


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.2f}\u202f%"


def spread(shares: Sequence[float], percent: bool = True) -> str:
    """The mean, in percent if asked, with the standard deviation if there are several values."""
    if not shares:
        return ""
    middle, deviation = statistics.fmean(shares), statistics.stdev(shares) if len(shares) > 1 else None
    if not percent:
        return decimal(middle) + ("" if deviation is None else f" ± {decimal(deviation)}")
    around = "" if deviation is None else f" ± {100 * deviation:.2f}"
    return f"{100 * middle:.2f}{around}\u202f%"


def writer(shown: Shown) -> Callable[[float | None], str]:
    """The function that writes values of a metric."""
    return percent if shown.percent else decimal


def decimal(value: float | None) -> str:
    """Three significant digits, as a power of ten only if the number would be longer than a dozen digits."""
    if value is None or not math.isfinite(value):
        return NONE if value is None else str(value)
    if value and not LEAST <= abs(value) < MOST:
        return f"{value:.3g}"
    places = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(0, places)}f}"


def brief(value: float, digits: int = 6) -> str:
    """As `decimal` writes it, with at most so many significant digits and no zeros at the end: for ticks of an axis."""
    if not math.isfinite(value) or (value and not LEAST <= abs(value) < MOST):
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


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
