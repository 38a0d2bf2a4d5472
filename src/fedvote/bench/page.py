"""The numbers of a benchmark as a page: how time grows, where it was measured over sizes, and the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fedvote.bench import Rows, text
from fedvote.report.axis import log_axis
from fedvote.report.headline import decimal
from fedvote.report.html_tables import table
from fedvote.report.lines import LegendKey, Point, Series, line_chart
from fedvote.report.markup import Html, join, tag
from fedvote.report.page import shell
from fedvote.report.sections import section

Row = dict[str, Any]


def page(name: str, rows: Rows) -> str:
    title = f"benchmark: {name}"
    head = tag("header", tag("p", "fedvote", class_="brand"), tag("h1", title))
    charts = growth(rows) if name == "simulate" else []
    every = table(list(rows[0]), [[text(value) for value in row.values()] for row in rows])
    return shell(title, join(head, tag("main", *charts, section("Every number", every))))


def growth(rows: Rows) -> list[Html]:
    """Seconds and samples a second against the number of clients; seconds against the length of a turn."""
    by_turn = [row for row in rows if sum(_same(row, other, "steps") for other in rows) > 1]
    return [
        chart("Seconds a round, by clients", rows, "clients", lambda row: float(row["seconds"])),
        chart("Samples a second, by clients", rows, "clients", lambda row: float(row["samples_per_second"])),
        chart("Seconds a round, by local steps", by_turn, "steps", lambda row: float(row["seconds"])),
    ]


def chart(title: str, rows: Rows, by: str, value: Callable[[Row], float]) -> Html:
    """A line for each network, on two logarithmic axes."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(_label(row, by), []).append(row)
    lines = {name: sorted(mine, key=lambda row: row[by]) for name, mine in lines.items() if len(mine) > 1}
    if not lines:
        return section(title, tag("p", "Measured for one size alone.", class_="empty"))
    series = [
        Series(name, index, "solid", (f"line-{index}",), _points(mine, by, value))
        for index, (name, mine) in enumerate(lines.items())
    ]
    xs, ys = ([getattr(p, axis) for each in series for p in each.points] for axis in ("x", "y"))
    keys = [LegendKey(f"line-{index}", each.name, index, "solid") for index, each in enumerate(series)]
    x, y = log_axis(min(xs), max(xs)), log_axis(min(ys) / 1.5, max(ys) * 1.5)
    return section(title, line_chart(title, series, x, y, by, decimal, keys))


def _points(rows: Sequence[Row], by: str, value: Callable[[Row], float]) -> tuple[Point, ...]:
    return tuple(Point(float(row[by]), value(row), f"{row[by]} {by}") for row in rows)


def _label(row: Row, by: str) -> str:
    """What a line is called: the network, and what else stays the same along it."""
    compiled = ", compiled" if row["compiled"] else ""
    return f"{row['model']}{compiled}, " + (f"{row['steps']} steps" if by == "clients" else f"{row['clients']} clients")


def _same(row: Row, other: Row, but: str) -> bool:
    keys = {"model", "compiled", "clients", "steps"} - {but}
    return all(row[key] == other[key] for key in keys)
