"""The results of a sweep: means over seeds, the best settings, and the table of all runs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedvote.runs.environment import provenance
from fedvote.runs.json_table import without_nan
from fedvote.runs.own_files import own_files
from fedvote.runs.progress import traffic_text
from fedvote.runs.sweep import Point
from fedvote.runs.toml_tables import as_table
from fedvote.system.atomic_file import write
from fedvote.system.device import find_device
from fedvote.tasks.shown_metric import ACCURACY, Shown


@dataclass(frozen=True)
class Mean:
    """The mean over runs that differ only in their seed."""

    settings: tuple[str, ...]  # without the seed
    qualities: tuple[float, ...]
    shown: Shown = ACCURACY
    lost: int = 0  # rounds that counted no message, in all of these runs
    up: float = 0.0  # bytes of all clients in all rounds, the mean over seeds
    down: float = 0.0

    @property
    def quality(self) -> float:
        return statistics.mean(self.qualities)

    @property
    def deviation(self) -> float:
        if math.isnan(self.quality):  # Python 3.11 has no deviation of NaN
            return math.nan
        return statistics.stdev(self.qualities) if len(self.qualities) > 1 else 0.0

    @property
    def goodness(self) -> float:
        """The larger, the better."""
        if math.isnan(self.quality):
            return -math.inf
        return self.quality if self.shown.higher_is_better else -self.quality

    def __str__(self) -> str:
        deviation = f"{100 * self.deviation:.1f}" if self.shown.percent else f"{self.deviation:.2g}"
        spread = f" ± {deviation} ({len(self.qualities)} seeds)" if len(self.qualities) > 1 else ""
        sent = traffic_text(self.up, self.down)
        name = " ".join(self.settings) or "all seeds"
        return f"{name:40}  {self.shown.name} {self.shown.text(self.quality):>6}{spread}  {sent}"


def means(done: Sequence[Point]) -> list[Mean]:
    """Group points that differ only in their seed."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in done:
        settings = tuple(setting for setting in point.settings if not setting.startswith("seed="))
        groups.setdefault(settings, []).append(point)
    return [_mean(settings, group) for settings, group in groups.items()]


def _mean(settings: tuple[str, ...], group: Sequence[Point]) -> Mean:
    up, down = (statistics.mean(point.sent(way) for point in group) for way in ("up", "down"))
    lost = sum(point.lost for point in group)
    return Mean(settings, tuple(point.quality for point in group), group[0].shown, lost, up, down)


def best(done: Sequence[Point]) -> Mean:
    """The settings with the best mean metric over seeds; settings that lost a round come last."""
    return max(means(done), key=lambda mean: (not mean.lost, mean.goodness))


def best_of_each(done: Sequence[Point]) -> list[Mean]:
    """The best settings of each method, if the sweep has several: each is compared at its best."""
    by_method: dict[str, list[Point]] = {}
    for point in done:
        for method in (setting for setting in point.settings if setting.startswith("method=")):
            by_method.setdefault(method, []).append(point)
    return [best(points) for points in by_method.values()] if len(by_method) > 1 else []


def at_the_edge(done: Sequence[Point]) -> str:
    """One sentence about the best numbers that are at an edge of their list: a wider one may be better."""
    tried: dict[str, set[float]] = {}
    for setting in (setting for point in done for setting in point.settings):
        key, _, value = setting.partition("=")
        if key != "seed" and (number := _number(value)) is not None:
            tried.setdefault(key, set()).add(number)
    edges = {key: {min(found): "smallest", max(found): "largest"} for key, found in tried.items() if len(found) > 1}
    parts = []
    for chosen in best_of_each(done) or [best(done)]:
        values = dict(setting.split("=", 1) for setting in chosen.settings)
        whose = f" of {values['method']}" if best_of_each(done) else ""
        for key in (key for key in values if key in edges):
            number = _number(values[key])
            if number is not None and (edge := edges[key].get(number)):
                parts.append(f"the best {key}{whose}, {values[key]}, is the {edge} of its list")
    return f"{' and '.join(parts)}: a wider list may have a better value" if parts else ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def save(done: Sequence[Point], file: Path, device: str = "auto") -> None:
    """Write the table of a sweep: its runs, their means, and the best of them."""
    name = done[0].shown.name
    names = ("round", name, f"{name}_calibrated", f"{name}_float", "loss")
    rows = [
        {
            "settings": list(point.settings),
            "validated": point.validated,
            **{name: point.records[-1][name] for name in names},
            "uplink_bytes": point.sent("up"),
            "downlink_bytes": point.sent("down"),
            "total_bytes": point.sent("up") + point.sent("down"),
            "lost_rounds": point.lost,
            "config": as_table(point.config),
            "files": own_files(point.config),
        }
        for point in done
    ]
    over_seeds = [
        {
            "settings": list(mean.settings),
            "seeds": len(mean.qualities),
            name: mean.quality,
            "deviation": mean.deviation,
            "uplink_bytes": mean.up,
            "downlink_bytes": mean.down,
        }
        for mean in means(done)
    ]
    made_by = provenance(find_device(device), (point.config.seed for point in done))
    chosen = {"best": list(best(done).settings), "best_of_each": [list(mean.settings) for mean in best_of_each(done)]}
    table = {**made_by, **chosen, "over_seeds": over_seeds, "runs": rows}
    write(file, json.dumps(without_nan(table), indent=2, allow_nan=False) + "\n")
