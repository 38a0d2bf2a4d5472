"""Runs that differ only in their seed: one line with a band in charts, one row with a spread in tables."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from fedvote.report.lines import Point
from fedvote.report.read_run import Run
from fedvote.tasks.shown_metric import Shown

SEED_AT_END = re.compile(r"[-_.,/= ]*(seed)?[-_.,/= ]*\d*$")

HUGE = 1e300  # larger values have no place in a chart: sums of them overflow

Values = Callable[[Run], Sequence[float | None]]
"""A number for each round of a run; None: not measured."""


@dataclass(frozen=True)
class Group:
    """One run, or several that differ only in their seed."""

    name: str
    runs: tuple[Run, ...]

    @property
    def shown(self) -> Shown:
        return self.runs[0].shown

    @property
    def seeds(self) -> list[object]:
        return [run.setting("seed") for run in self.runs]


def groups_of(runs: Sequence[Run]) -> list[Group]:
    """The runs in their order, those that differ only in their seed together. The same seed twice stays apart."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        common = {key: value for key, value in run.config.items() if key != "seed"} | {"done": len(run.rounds)}
        found.setdefault(json.dumps(common, sort_keys=True, default=str), []).append(run)
    parts: list[tuple[Run, ...]] = []
    for together in found.values():
        distinct = len({str(run.setting("seed")) for run in together}) == len(together)
        parts += [tuple(together)] if distinct else [(run,) for run in together]
    return [Group(name, part) for name, part in zip(names_of(parts), parts, strict=True)]


def names_of(parts: Sequence[Sequence[Run]]) -> list[str]:
    """The beginning that the names of a group share, if no other group has it; else all of its names."""
    short = [SEED_AT_END.sub("", shared_start([run.name for run in part])) for part in parts]
    long = [", ".join(run.name for run in part) for part in parts]
    return [
        name if len(part) > 1 and name and [*short, *long].count(name) == 1 else full
        for name, full, part in zip(short, long, parts, strict=True)
    ]


def shared_start(names: Sequence[str]) -> str:
    """The letters with which all names begin."""
    letters = takewhile(lambda at: len(set(at)) == 1, zip(*names, strict=False))
    return "".join(letter for letter, *_ in letters)


def several_seeds(groups: Sequence[Group]) -> bool:
    return any(group.runs[1:] for group in groups)


def mean_points(
    group: Group, xs: Values, ys: Values, note: Callable[[int, float], str], scale: float = 1
) -> tuple[Point, ...]:
    """A point for every round in which all runs have a y to draw: mean x, mean y, and the standard deviation of y."""
    found = []
    table = [list(zip(run.rounds, xs(run), ys(run), strict=True)) for run in group.runs]
    for rows in zip(*table, strict=True):
        x = [each for _, each, _ in rows if each is not None]
        y = [scale * each for *_, each in rows if each is not None and abs(each) < HUGE]
        if len(x) == len(y) == len(rows):
            deviation = statistics.stdev(y) if len(y) > 1 else 0.0
            middle = statistics.fmean(x)
            found.append(Point(middle, statistics.fmean(y), note(rows[0][0]["round"], middle), deviation))
    return tuple(found)
