"""The method's own measurements: one small chart for each number."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.methods import METHODS
from fedvote.report.axis import axis_from_zero, value_axis
from fedvote.report.equal_lines import told_apart
from fedvote.report.lines import LegendKey, Point, Series, legend, line_chart
from fedvote.report.markup import Html, tag
from fedvote.report.run_page import Run
from fedvote.report.sections import section


def method_measurements(runs: Sequence[Run]) -> Html | None:
    names = list(dict.fromkeys(name for run in runs for record in run.rounds for name in record.get("measured", {})))
    if not names:
        return None
    keys = [LegendKey(f"run-{index}", run.name, index, "solid") for index, run in enumerate(runs)] if runs[1:] else []
    drawn = tag("div", *(panel(name, runs) for name in names), class_="panels")
    return section(
        "What the method measured", tag("div", legend(keys) if keys else "", drawn, class_="multiples"),
        explain="Numbers that the method itself records in every round.",
    )  # fmt: skip


def panel(name: str, runs: Sequence[Run]) -> Html:
    series = [Series(run.name, index, "solid", (f"run-{index}",), points(run, name)) for index, run in enumerate(runs)]
    seen = [point for each in series for point in each.points]
    x, y = axis_from_zero(max(point.x for point in seen), whole=True), value_axis([point.y for point in seen])
    title, sentence = in_words(name, runs)
    chart = line_chart(title, told_apart(series), x, y, "round", lambda value: f"{value:.4g}")
    caption = tag("figcaption", title, tag("small", sentence))
    return tag("figure", caption, chart, data_chart="lines")


def in_words(name: str, runs: Sequence[Run]) -> tuple[str, str]:
    """A number's name in words and its sentence, as its method explains it."""
    known = {key: text for method in METHODS.values() for key, text in method.explains.items()}
    own = {key: text for run in runs for key, text in run.explains.items()}
    title, _, sentence = str((own | known).get(name, "")).partition(": ")
    return title or name.replace("_", " "), sentence or f"Recorded by the method as {name}."


def points(run: Run, name: str) -> tuple[Point, ...]:
    values = [(record["round"], record.get("measured", {}).get(name)) for record in run.rounds]
    return tuple(Point(number, value, f"round {number}") for number, value in values if value is not None)
