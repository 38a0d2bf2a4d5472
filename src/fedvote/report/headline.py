"""The few numbers that summarise a run, and the format of numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedvote.report.run_page import Run, both_ways
from fedvote.tasks.goal import ACCURACY, Shown

NONE = "\N{EN DASH}"
FLOAT32_BITS = 32


@dataclass(frozen=True)
class Headline:
    label: str
    value: str
    note: str = ""


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


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{decimal(seconds)}\u202fs"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\u202fmin {rest}\u202fs" if minutes < 60 else f"{minutes // 60}\u202fh {minutes % 60}\u202fmin"


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def last(values: list[float]) -> float | None:
    return values[-1] if values else None


def headlines(run: Run) -> list[Headline]:
    return [*accuracies(run), *traffic(run), time_taken(run)]


def accuracies(run: Run) -> list[Headline]:
    deployed, calibrated = last(run.quality()), last(run.quality("_calibrated"))
    floating, floating_calibrated = last(run.quality("_float")), last(run.quality("_float_calibrated"))
    show, word = writer(run.shown), "" if run.shown == ACCURACY else f"{run.shown.name}, "
    backdoor = run.column("backdoor_success")
    success = f", backdoor {percent(backdoor[-1])}" if backdoor else ""
    return [
        Headline("Deployed model", show(deployed), f"{word}calibrated {show(calibrated)}{success}"),
        Headline("Float model", show(floating), f"{word}calibrated {show(floating_calibrated)}"),
    ]


def traffic(run: Run) -> list[Headline]:
    up, down = mean(run.column("uplink_bits_per_weight")), mean(run.column("downlink_bits_per_weight"))
    both = None if up is None or down is None else up + down
    fewer = f"{decimal(float32_bits(run) / both)}\N{MULTIPLICATION SIGN}" if both else NONE
    total = run.megabytes[-1] * 1e6 if run.megabytes else 0
    return [
        Headline("Traffic per client and round", size(traffic_per_client(run)), f"{size(total)} in total, up and down"),
        Headline("Bits per weight", decimal(both), f"{decimal(up)} up, {decimal(down)} down"),
        Headline("Smaller than float32", fewer, f"{FLOAT32_BITS} bits per weight up, {FLOAT32_BITS} down"),
    ]


def float32_bits(run: Run) -> float:
    """Mean bits that float32 weights would take a round, up and down. The seed makes the first broadcast."""
    known = sum(record["round"] == 1 for record in run.rounds) if run.setting("model", "start") in (None, "seed") else 0
    return FLOAT32_BITS * (2 - known / len(run.rounds))


def traffic_per_client(run: Run) -> float | None:
    """Mean bytes that one client sends and receives in a round, over the rounds that name their clients."""
    records = [record for record in run.rounds if record.get("clients")]
    turns = sum(len(record["clients"]) for record in records)
    return sum(map(both_ways, records)) / turns if turns else None


def time_taken(run: Run) -> Headline:
    seconds = run.column("seconds")
    each = mean(seconds)
    return Headline("Total time", duration(sum(seconds)), NONE if each is None else f"{duration(each)} a round")
