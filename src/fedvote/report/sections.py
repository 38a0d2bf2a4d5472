"""The sections of the page: runs in, figures out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fedvote.report.axis import axis_from_zero, log_axis, percent_axis, value_axis
from fedvote.report.equal_lines import equal_runs, told_apart
from fedvote.report.headline import decimal, percent
from fedvote.report.heat import HeatMap, heat_map
from fedvote.report.lines import LegendKey, Point, Series, line_chart
from fedvote.report.markup import Html, join, tag
from fedvote.report.run_page import Clients, Run, number
from fedvote.tasks.goal import ACCURACY, Shown

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


def kinds_of(runs: Sequence[Run], shown: Shown) -> dict[str, tuple[str, int, str]]:
    """What to draw of the runs that are judged by this metric."""
    return KINDS | (BACKDOOR if any(run.column(key) for run in runs if run.shown == shown for key in BACKDOOR) else {})


Place = Callable[[Run], Sequence[float]]
"""The x values of a run's rounds."""


def accuracy_series(runs: Sequence[Run], place: Place, unit: str, shown: Shown = ACCURACY) -> list[Series]:
    """Every kind of accuracy, or of another metric, of every run that is judged by it."""
    series = [
        Series(
            name=f"{run.name}, {label}" if len(runs) > 1 else label,
            colour=index if len(runs) > 1 else colour,
            dash=dash,
            tokens=(f"run-{index}", key),
            points=tuple(points(run, key, place(run), unit)),
        )
        for key, (label, colour, dash) in kinds_of(runs, shown).items()
        for index, run in enumerate(runs)
        if run.shown == shown
    ]
    return told_apart(series)


def points(run: Run, kind: str, places: Sequence[float], unit: str) -> list[Point]:
    """A point for every round in which the metric was measured and is finite."""
    key, scale = kind.replace("accuracy", run.shown.name), 100 if run.shown.percent else 1
    rows = [(record["round"], x, number(record, key)) for record, x in zip(run.rounds, places, strict=True)]
    notes = [f"round {index}" + (f" \N{MIDDLE DOT} {decimal(x)} {unit}" if unit else "") for index, x, _ in rows]
    return [
        Point(x, scale * y, note)
        for (_, x, y), note in zip(rows, notes, strict=True)
        if y is not None and math.isfinite(y)
    ]


def legend_keys(runs: Sequence[Run], shown: Shown) -> list[LegendKey]:
    kinds = [
        LegendKey(key, label, None if len(runs) > 1 else colour, dash)
        for key, (label, colour, dash) in reversed(kinds_of(runs, shown).items())
    ]
    names = [
        LegendKey(f"run-{index}", run.name, index, "solid") for index, run in enumerate(runs) if run.shown == shown
    ]
    return [*names, *kinds] if len(runs) > 1 else kinds


def accuracy_figure(
    runs: Sequence[Run], label: str, place: Place, x_name: str, unit: str = "", shown: Shown = ACCURACY
) -> Html:
    series = accuracy_series(runs, place, unit, shown)
    seen = [point for each in series for point in each.points]
    if not seen:
        return tag("p", f"No round has a measured {shown.name} yet.", class_="empty")
    first, ends = min(point.x for point in seen), [each.points[-1].x for each in series if each.points]
    spread = bool(unit) and first > 0 and max(ends) > LOG_FROM * min(ends)
    x = log_axis(first, max(ends)) if spread else axis_from_zero(max(ends), whole=not unit)
    y = (percent_axis if shown.percent else value_axis)([point.y for point in seen])
    hidden = ("accuracy_calibrated",) if len(runs) > 1 else ()
    name = f"{x_name}, logarithmic" if spread else x_name
    sign = "\u202f%" if shown.percent else ""
    keys = legend_keys(runs, shown)
    chart = line_chart(label, series, x, y, name, lambda value: f"{value:.4g}{sign}", keys, hidden)
    return join(tag("figure", chart, data_chart="lines"), equal_runs(runs, series))


def by_round(runs: Sequence[Run], shown: Shown = ACCURACY) -> Html:
    title = f"{titled(shown)} by round"
    figure = accuracy_figure(
        runs, title, lambda run: [float(record["round"]) for record in run.rounds], "round", "", shown
    )
    trigger = (
        " Backdoor: the share of test inputs of other classes that become the attackers' class when they have its "
        "trigger, by the calibrated deployed model."
    )
    explain = (
        "Deployed: the model that goes onto a device, evaluated with the batch-norm statistics of each test batch. "
        "Calibrated: the same model with fixed statistics, as a device needs that sees one input at a time. Float: the "
        "model from which training continues."
    )
    better = "" if shown.higher_is_better else f" The smaller the {shown.name}, the better."
    backdoor = trigger if BACKDOOR.keys() <= kinds_of(runs, shown).keys() else ""
    return section(title, figure, explain=explain + better + backdoor)


def by_traffic(runs: Sequence[Run], shown: Shown = ACCURACY) -> Html:
    title, name = f"{titled(shown)} by traffic", "megabytes of all clients, up and down"
    figure = accuracy_figure(runs, title, lambda run: run.megabytes, name, "MB", shown)
    explain = f"{titled(shown)} against all bytes so far, in both directions, of all clients."
    return section(title, figure, explain=explain)


def titled(shown: Shown) -> str:
    return shown.name[:1].upper() + shown.name[1:]


def client_data(runs: Sequence[Run]) -> Html:
    """A map of each client's classes; runs on the same data share one."""
    names: dict[Clients | None, list[str]] = {}
    for run in runs:
        names.setdefault(run.clients, []).append(run.name)
    parts = []
    for clients, sharing in names.items():
        heading = tag("h3", ", ".join(sharing)) if len(names) > 1 else ""
        parts.append(join(heading, data_map(clients)))
    return section("Data of each client", *parts, explain="Number of examples of each class or group of targets.")


def data_map(clients: Clients | None) -> Html:
    if clients is None or not clients.counts or not clients.classes:
        return tag("p", "The clients' data are not known: this run has no clients.json.", class_="empty")
    heat = HeatMap(
        label=f"Examples by client and class: {len(clients.counts)} clients, {len(clients.classes)} classes",
        rows=[str(index) for index in range(len(clients.counts))],
        columns=clients.classes,
        cells=clients.counts,
        row_name="client",
        column_name="class",
        unit="examples",
        marked=clients.hostile,
        mark_name="hostile",
        totals="examples",
    )
    return tag("figure", heat_map(heat), data_chart="heat")


def vote_weights(run: Run) -> Html | None:
    """A map of vote weights by client and round; None if the run has none."""
    weights = [(str(record["round"]), record.get("vote_weight") or {}) for record in run.rounds]
    clients = sorted({client for _, row in weights for client in row}, key=lambda name: (len(name), name))
    if not clients:
        return None
    heat = HeatMap(
        label=f"Vote weight by client and round: {len(clients)} clients, {len(weights)} rounds",
        rows=clients,
        columns=[index for index, _ in weights],
        cells=[[weight(row, client) for _, row in weights] for client in clients],
        row_name="client",
        column_name="round",
        unit="vote weight",
        empty="not in the tally",
        marked=run.hostile,
        mark_name="hostile",
    )
    return join(tag("p", share_of_hostile(run), class_="explain"), tag("figure", heat_map(heat), data_chart="heat"))


def weight(row: dict[str, float], client: str) -> float | None:
    value = number(row, client)
    return float(f"{value:.4g}") if value is not None and math.isfinite(value) else None


def share_of_hostile(run: Run) -> str:
    row = next(row for record in reversed(run.rounds) if (row := record.get("vote_weight")))
    values = {client: weight(row, client) or 0 for client in row}
    total = sum(values.values())
    if not run.hostile or not total:
        return "The weight of each client's vote."
    share = sum(value for client, value in values.items() if client in run.hostile) / total
    hostile = len(run.hostile & set(values))
    return (
        f"The weight of each client's vote. In the last round, {hostile} hostile of {len(values)} clients held "
        f"{percent(share)} of the total weight."
    )
