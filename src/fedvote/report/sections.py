"""The sections of the page: runs in, figures out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedvote.report.axis import Axis, axis_from_zero, log_axis, percent_axis, value_axis
from fedvote.report.equal_lines import equal_runs, told_apart
from fedvote.report.line_look import patterned
from fedvote.report.lines import LegendKey, Point, Series, edges, line_chart
from fedvote.report.markup import Html, join, tag
from fedvote.report.number_text import brief, decimal
from fedvote.report.over_seeds import Group, mean_points, several_seeds
from fedvote.report.read_run import Run, number
from fedvote.tasks.shown_metric import ACCURACY, Shown

KINDS = {  # metric: its name, its colour on the page of one run, its dash
    "accuracy_float": ("float", 1, "dashed"),
    "accuracy_calibrated": ("deployed, calibrated", 2, "dotted"),
    "accuracy": ("deployed", 0, "solid"),
}

BACKDOOR = {"backdoor_success": ("backdoor", 3, "dotted")}  # shown where an attack has a trigger

LOG_FROM = 5
"""If one run sends this many times more than another, the axis of bytes is logarithmic."""


def section(title: str, *content: str, explain: str = "") -> Html:
    return tag("section", tag("h2", title), tag("p", explain, class_="explain") if explain else "", *content)


def kinds_of(groups: Sequence[Group], shown: Shown) -> dict[str, tuple[str, int, str]]:
    """What to draw of the runs that are judged by this metric."""
    runs = [run for group in groups if group.shown == shown for run in group.runs]
    return KINDS | (BACKDOOR if any(run.column(key) for run in runs for key in BACKDOOR) else {})


Place = Callable[[Run], Sequence[float]]
"""The x values of a run's rounds."""


def accuracy_series(groups: Sequence[Group], place: Place, unit: str, shown: Shown = ACCURACY) -> list[Series]:
    """Every kind of accuracy, or of another metric, of every run or group of seeds that is judged by it."""
    series = [
        Series(
            name=f"{group.name}, {label}" if len(groups) > 1 else label,
            colour=index if len(groups) > 1 else colour,
            dash=patterned(dash, index),
            tokens=(f"run-{index}", key),
            points=points(group, key, place, unit),
        )
        for key, (label, colour, dash) in kinds_of(groups, shown).items()
        for index, group in enumerate(groups)
        if group.shown == shown
    ]
    return told_apart(series)


def points(group: Group, kind: str, place: Place, unit: str) -> tuple[Point, ...]:
    """A point for every round in which the metric was measured and is finite."""
    key, scale = kind.replace("accuracy", group.shown.name), 100 if group.shown.percent else 1

    def values(run: Run) -> list[float | None]:
        return [number(record, key) for record in run.rounds]

    def note(index: int, x: float) -> str:
        return f"round {index}" + (f" \N{MIDDLE DOT} {decimal(x)} {unit}" if unit else "")

    return mean_points(group, place, values, note, scale)


def legend_keys(groups: Sequence[Group], shown: Shown) -> list[LegendKey]:
    kinds = [
        LegendKey(key, label, None if len(groups) > 1 else colour, dash)
        for key, (label, colour, dash) in reversed(kinds_of(groups, shown).items())
    ]
    names = [
        LegendKey(f"run-{index}", group.name, index, patterned("solid", index))
        for index, group in enumerate(groups)
        if group.shown == shown
    ]
    return [*names, *kinds] if len(groups) > 1 else kinds


def accuracy_figure(
    groups: Sequence[Group], label: str, place: Place, x_name: str, unit: str = "", shown: Shown = ACCURACY
) -> Html:
    series = accuracy_series(groups, place, unit, shown)
    seen = [point for each in series for point in each.points]
    if not seen:
        return tag("p", f"No round has a measured {shown.name} yet.", class_="empty")
    first, ends = min(point.x for point in seen), [each.points[-1].x for each in series if each.points]
    spread = bool(unit) and first > 0 and max(ends) > LOG_FROM * min(ends)
    x = log_axis(first, max(ends)) if spread else axis_from_zero(max(ends), whole=not unit)
    y = y_axis(seen, shown)
    hidden = ("accuracy_calibrated",) if len(groups) > 1 else ()
    name = f"{x_name}, logarithmic" if spread else x_name
    sign = "\u202f%" if shown.percent else ""
    keys = legend_keys(groups, shown)
    chart = line_chart(label, series, x, y, name, lambda value: brief(value, 4) + sign, keys, hidden)
    return join(tag("figure", chart, data_chart="lines"), equal_runs(groups, series))


def y_axis(points: Sequence[Point], shown: Shown) -> Axis:
    """The axis that has room for all points and the bands around them. No share is above 100 percent."""
    if not shown.percent:
        return value_axis(edges(points))
    return percent_axis([min(100, max(0, edge)) for edge in edges(points)])


def by_round(groups: Sequence[Group], shown: Shown = ACCURACY) -> Html:
    title = f"{shown.title} by round"
    figure = accuracy_figure(groups, title, lambda run: run.round_numbers, "round", "", shown)
    trigger = (
        " Backdoor: the share of test inputs of other classes that become the attackers' class when they have its "
        "trigger, by the calibrated deployed network."
    )
    explain = (
        "Deployed: the network that goes onto a device, normalised by the statistics of each test batch. Calibrated: "
        "the same network with fixed statistics, for one input at a time. Float: the network from which training "
        "continues."
    )
    better = "" if shown.higher_is_better else f" The smaller the {shown.name}, the better."
    backdoor = trigger if BACKDOOR.keys() <= kinds_of(groups, shown).keys() else ""
    return section(title, figure, explain=explain + better + backdoor + about_bands(groups))


def about_bands(groups: Sequence[Group]) -> str:
    if not several_seeds(groups):
        return ""
    return " A line is the mean of runs that differ only in their seed, its band their standard deviation."


def by_traffic(groups: Sequence[Group], shown: Shown = ACCURACY) -> Html:
    title, name = f"{shown.title} by traffic", "megabytes of all clients, up and down"
    figure = accuracy_figure(groups, title, lambda run: run.megabytes, name, "MB", shown)
    explain = f"{shown.title} against all bytes so far, in both directions, of all clients."
    return section(title, figure, explain=explain)


def folded(name: str, content: Html, of: int) -> Html:
    """The part of one run: as it is if it is the only one, else behind its name."""
    return content if of == 1 else tag("details", tag("summary", name), content)
