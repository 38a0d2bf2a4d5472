"""Views of runs side by side: curves, accuracy by number of attackers, and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fedvote.report.axis import axis_from_zero, log_axis
from fedvote.report.chart import Chart, accuracy_axis, line, panels, swatch
from fedvote.report.html_tables import table
from fedvote.report.lines import Series
from fedvote.report.markup import Html
from fedvote.report.number_text import decimal, spread
from fedvote.report.sections import section
from fedvote.studies.experiments.cells import Runs

GIGABYTE = 1e9


@dataclass(frozen=True)
class View:
    """Charts and a table. The lines of a chart are named as the table's rows."""

    title: str
    explain: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    charts: Sequence[Chart] = ()

    def section(self) -> Html:
        names = [row[0] for row in self.rows]
        rows = [[swatch(name, names), *cells] for name, *cells in self.rows] if self.charts else self.rows
        figures = [panels(self.charts)] if len(self.charts) > 1 else [chart.figure() for chart in self.charts]
        return section(self.title, *figures, table(self.head, rows, "numbers"), explain=self.explain)


Show = Callable[[Sequence[Runs]], View]


def by_round(every: Sequence[Runs]) -> View:
    """Accuracy after every round, one line a row, and the bytes sent."""
    names = [runs.cell.row for runs in every]

    def one_line(runs: Runs) -> Series:
        ys = runs.by_round("accuracy")
        return line(runs.cell.row, names, range(1, len(ys) + 1), ys, lambda index: f"round {index + 1}")

    lines = tuple(map(one_line, every))
    last = axis_from_zero(max(runs.rounds for runs in every), whole=True)
    chart = Chart("accuracy-by-round", "Accuracy by round", lines, last, "round", accuracy_axis(lines))
    head = ["Method", "Rounds", "Seeds", "Accuracy", "Bits a weight up", "Down", "Together", "GB, all clients"]
    explain = (
        "Accuracy of the deployed model: quantised for FedVote, float for the others. Means over seeds, with their "
        "standard deviation after the last round."
    )
    return View(chart.title, explain, head, [_sent(runs) for runs in every], [chart])


def _sent(runs: Runs) -> list[str]:
    total = sum(runs.so_far(f"{way}link_bytes")[-1] for way in ("up", "down")) / GIGABYTE
    up, down = (runs.so_far(f"{way}link_bits_per_weight")[-1] / runs.rounds for way in ("up", "down"))
    shown = [spread(runs.last("accuracy")), *map(decimal, (up, down, up + down, total))]
    return [runs.cell.row, str(runs.rounds), str(len(runs.by_seed)), *shown]


def by_bytes(every: Sequence[Runs], gigabytes: Sequence[float] = (0.1, 0.5, 1.5, 4.7)) -> View:
    """Accuracy by bytes that all clients have sent; the paper speaks of 1.5 and 4.7 GB."""
    names = [runs.cell.row for runs in every]
    sent = {runs.cell.row: [total / GIGABYTE for total in runs.so_far("uplink_bytes")] for runs in every}

    def one_line(runs: Runs) -> Series:
        xs = sent[runs.cell.row]
        notes = [f"round {index} \N{MIDDLE DOT} {decimal(x)} GB" for index, x in enumerate(xs, start=1)]
        return line(runs.cell.row, names, xs, runs.by_round("accuracy"), notes.__getitem__)

    def reached(runs: Runs, most: float) -> str:
        """The accuracy after the last round within a budget of so many gigabytes."""
        return spread(runs.last("accuracy", sum(x <= most for x in sent[runs.cell.row]))) or "no round yet"

    def cells(runs: Runs) -> list[str]:
        total = sent[runs.cell.row][-1]
        another = total + total / runs.rounds  # with one more round: a budget beyond it was not used up
        budgets = [reached(runs, most) if most < another else "ended before" for most in gigabytes]
        return [*budgets, f"{reached(runs, total)} with {decimal(total)} GB"]

    lines = tuple(map(one_line, every))
    totals = [x for xs in sent.values() for x in xs]
    x = log_axis(min(totals) / 1.1, max(totals) * 1.1)
    about = "gigabytes sent by all clients so far, logarithmic"
    chart = Chart("accuracy-by-uplink", "Accuracy by uplink", lines, x, about, accuracy_axis(lines))
    explain = (
        "One point a round, means over seeds. The table shows the accuracy after the last round within each budget, "
        "with its standard deviation over seeds."
    )
    head = ["Method", *(f"with {most:g} GB" for most in gigabytes), "In total"]
    rows = [[runs.cell.row, *cells(runs)] for runs in every]
    return View(chart.title, explain, head, rows, [chart])


def by_number(every: Sequence[Runs]) -> View:
    """Accuracy after the last round, one line a row, by the number of attackers in the column's name."""
    names = list(dict.fromkeys(runs.cell.row for runs in every))
    columns = sorted({int(runs.cell.column) for runs in every})
    ends = {(runs.cell.row, int(runs.cell.column)): runs.last("accuracy") for runs in every}

    def one_line(name: str) -> Series:
        ys = [sum(found) / len(found) if (found := ends.get((name, column))) else None for column in columns]
        return line(name, names, columns, ys, lambda index: f"{columns[index]} hostile")

    lines = tuple(map(one_line, names))
    x, y = axis_from_zero(max(columns), whole=True), accuracy_axis(lines)
    chart = Chart("accuracy-by-hostile", "Accuracy by number of attackers", lines, x, "hostile clients", y)
    head = ["Rule", *(f"{column} hostile" for column in columns)]
    rows = [[name, *(spread(ends.get((name, column), [])) for column in columns)] for name in names]
    explain = "After the last round: means over seeds, with their standard deviation."
    return View(chart.title, explain, head, rows, [chart])


Ends = Callable[[Runs, str], list[float]]
"""Runs and a metric -> one result for each seed."""


def grid(
    metrics: Mapping[str, str], corner: str, title: str = "Accuracy after the last round", ends: Ends = Runs.last
) -> Show:
    """A view: a table of accuracies beside the paper's, with a row for each metric."""

    def show(every: Sequence[Runs]) -> View:
        names = list(dict.fromkeys(runs.cell.row for runs in every))
        columns = sorted(dict.fromkeys(runs.cell.column for runs in every), key=_as_number)
        by_place = {(runs.cell.row, runs.cell.column): runs for runs in every}
        rows = [
            [
                f"{name}, {label}" if label else name,
                *(beside_printed(by_place.get((name, column)), metric, ends) for column in columns),
            ]
            for name in names
            for metric, label in metrics.items()
        ]
        explain = "Means over seeds, with their standard deviation; in brackets, the paper's number."
        return View(title, explain, [corner, *columns], rows)

    return show


def _as_number(column: str) -> float:
    """Numbers by their size; other names as they come."""
    try:
        return float(column)
    except ValueError:
        return 0.0


def beside_printed(runs: Runs | None, metric: str, ends: Ends) -> str:
    if runs is None:
        return ""
    printed = runs.cell.printed.get(metric) if runs.as_printed else None
    return spread(ends(runs, metric)) + (f" ({printed:.1f})" if printed is not None else "")
