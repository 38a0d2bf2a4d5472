"""The page of a benchmark: every number, and for the simulator, charts of time by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedvote.report.axis import log_axis
from fedvote.report.chart import Chart, Page, series_of
from fedvote.report.html_tables import table
from fedvote.report.lines import Point, Series
from fedvote.report.number_text import decimal
from fedvote.report.sections import section
from fedvote.studies.rows import Rows, cells

Row = dict[str, Any]


def growth_page(name: str, rows: Rows, environment: Mapping[str, str]) -> Page:
    charts = growth(rows) if name == "simulate" else []
    drawn = [section(chart.title, chart.figure()) for chart in charts]
    facts = {fact: environment[fact] for fact in ("device", "torch")}
    return Page(f"benchmark: {name}", facts, [*drawn, section("Every number", table(*cells(rows)))], charts)


def growth(rows: Rows) -> list[Chart]:
    """Charts of seconds and samples a second by number of clients, and of seconds by local steps."""
    wanted = [
        ("Seconds a round, by clients", "clients", "seconds"),
        ("Samples a second, by clients", "clients", "samples_per_second"),
        ("Seconds a round, by local steps", "steps", "seconds"),
    ]
    charts = [(title, by, lines(rows, by, value)) for title, by, value in wanted]
    return [chart(title, by, series) for title, by, series in charts if series]


def lines(rows: Rows, by: str, value: str) -> tuple[Series, ...]:
    """A line for each network that was measured for several sizes."""
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row[by]):
        grouped.setdefault(_label(row, by), []).append(row)
    several = {name: group for name, group in grouped.items() if len(group) > 1}
    return tuple(
        series_of(name, list(several), [Point(float(row[by]), float(row[value]), f"{row[by]} {by}") for row in group])
        for name, group in several.items()
    )


def chart(title: str, by: str, series: tuple[Series, ...]) -> Chart:
    """A chart with two logarithmic axes."""
    xs, ys = ([getattr(point, axis) for each in series for point in each.points] for axis in ("x", "y"))
    x, y = log_axis(min(xs), max(xs)), log_axis(min(ys) / 1.5, max(ys) * 1.5)
    return Chart(title.lower().replace(",", "").replace(" ", "-"), title, series, x, by, y, show=decimal)


def _label(row: Row, by: str) -> str:
    """The name of a line: the network, and the size that is constant along it."""
    augmented, compiled = ", augmented" if row["augment"] else "", ", compiled" if row["compiled"] else ""
    constant = f"{row['steps']} steps" if by == "clients" else f"{row['clients']} clients"
    return f"{row['model']}{augmented}{compiled}, {constant}"
