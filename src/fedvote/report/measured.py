"""The method's own measurements: one small chart for each number."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.methods import METHODS
from fedvote.report.axis import axis_from_zero, value_axis
from fedvote.report.equal_lines import told_apart
from fedvote.report.line_look import patterned
from fedvote.report.lines import LegendKey, Point, Series, edges, legend, line_chart
from fedvote.report.markup import Html, tag
from fedvote.report.number_text import brief
from fedvote.report.over_seeds import Group, mean_points
from fedvote.report.read_run import Run
from fedvote.report.sections import section


def method_measurements(groups: Sequence[Group]) -> Html | None:
    runs = [run for group in groups for run in group.runs]
    names = list(dict.fromkeys(name for run in runs for record in run.rounds for name in record.get("measured", {})))
    if not names:
        return None
    keys = [
        LegendKey(f"run-{index}", group.name, index, patterned("solid", index)) for index, group in enumerate(groups)
    ]
    drawn = tag("div", *(panel(name, groups) for name in names), class_="panels")
    return section(
        "What the method measured", tag("div", legend(keys) if keys[1:] else "", drawn, class_="multiples"),
        explain="Numbers that the method itself records in every round.",
    )  # fmt: skip


def panel(name: str, groups: Sequence[Group]) -> Html:
    series = [
        Series(group.name, index, patterned("solid", index), (f"run-{index}",), points(group, name))
        for index, group in enumerate(groups)
    ]
    seen = [point for each in series for point in each.points]
    if not seen:
        return Html()
    x, y = axis_from_zero(max(point.x for point in seen), whole=True), value_axis(edges(seen))
    title, sentence = in_words(name, [run for group in groups for run in group.runs])
    chart = line_chart(title, told_apart(series), x, y, "round", lambda value: brief(value, 4))
    caption = tag("figcaption", title, tag("small", sentence))
    return tag("figure", caption, chart, data_chart="lines")


def in_words(name: str, runs: Sequence[Run]) -> tuple[str, str]:
    """A number's name in words and its sentence, as its method explains it."""
    known = {key: text for method in METHODS.values() for key, text in method.explains.items()}
    own = {key: text for run in runs for key, text in run.explains.items()}
    title, _, sentence = str((own | known).get(name, "")).partition(": ")
    return title or name.replace("_", " "), sentence or f"Recorded by the method as {name}."


def points(group: Group, name: str) -> tuple[Point, ...]:
    def values(run: Run) -> list[float | None]:
        return [record.get("measured", {}).get(name) for record in run.rounds]

    return mean_points(group, lambda run: run.round_numbers, values, lambda index, _: f"round {index}")
