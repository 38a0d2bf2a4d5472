"""A line chart, for a page or an SVG file, and a page of charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedvote.report.axis import Axis, percent_axis
from fedvote.report.html_page import heading
from fedvote.report.line_look import COLOURS, patterned, swatched
from fedvote.report.lines import LegendKey, Point, Series, legend, line_chart
from fedvote.report.markup import Html, join, tag
from fedvote.report.number_text import NONE, brief
from fedvote.report.page import shell
from fedvote.report.run_sentence import in_common
from fedvote.report.svg import line_svg
from fedvote.runs.config import Config

Measured = Sequence[float | None]
"""Accuracies between 0 and 1; None: not measured."""

ORACLE = "oracle"


def show_percent(value: float) -> str:
    return f"{brief(value, 4)}\u202f%"


@dataclass(frozen=True)
class Chart:
    name: str  # of its file
    title: str
    series: tuple[Series, ...]
    x: Axis
    x_name: str
    y: Axis
    note: str = ""  # beside the title
    show: Callable[[float], str] = show_percent  # writes a y value

    @property
    def keys(self) -> list[LegendKey]:
        """The legend of the lines that have points."""
        return [LegendKey(each.tokens[0], each.name, each.colour, each.dash) for each in self.series if each.points]

    def figure(self) -> Html:
        drawn = line_chart(self.title, self.series, self.x, self.y, self.x_name, self.show, self.keys)
        return tag("figure", drawn, data_chart="lines")

    def panel(self) -> Html:
        """The chart with its title, but without its legend, which several panels share."""
        drawn = line_chart(self.title, self.series, self.x, self.y, self.x_name, self.show)
        return tag("figure", tag("figcaption", self.title, tag("small", self.note)), drawn, data_chart="lines")

    def svg(self) -> str:
        return line_svg(self.title, self.series, self.x, self.y, self.x_name, self.show, self.keys)


@dataclass(frozen=True)
class Page:
    title: str
    facts: Mapping[str, str]
    sections: Sequence[Html]
    charts: Sequence[Chart]

    def html(self) -> str:
        return shell(self.title, join(heading(self.title, self.facts), tag("main", *self.sections)))


def panels(charts: Sequence[Chart]) -> Html:
    """Small charts under a shared legend."""
    keys = {key.token: key for chart in charts for key in chart.keys}
    drawn = tag("div", *(chart.panel() for chart in charts), class_="panels")
    return tag("div", legend([keys[token] for token in sorted(keys)]), drawn, class_="multiples")


def look(name: str, names: Sequence[str]) -> tuple[int, str]:
    """A line's colour and dash: the last colour and dashed for the oracle, which no other line has."""
    others = COLOURS - 1
    if name == ORACLE:
        return others, "dashed"
    index = [each for each in names if each != ORACLE].index(name)
    return index % others, patterned("solid", index, others)


def swatch(name: str, names: Sequence[str]) -> Html:
    return swatched(name, *look(name, names))


def line(name: str, names: Sequence[str], xs: Sequence[float], ys: Measured, note: Callable[[int], str]) -> Series:
    """A line with a point for every measured y; `note` is the heading of the i-th point's tooltip."""
    pairs = enumerate(zip(xs, ys, strict=True))
    return series_of(name, names, [Point(x, 100 * y, note(i)) for i, (x, y) in pairs if y is not None])


def series_of(name: str, names: Sequence[str], points: Iterable[Point]) -> Series:
    """A line through these points, with the look that its name has among all names."""
    return Series(name, *look(name, names), (f"line-{names.index(name):02}",), tuple(points))


def accuracy_axis(series: Sequence[Series]) -> Axis:
    """The y axis that fits all these lines."""
    return percent_axis([point.y for each in series for point in each.points] or [0])


def facts_of(configs: Sequence[Config], environment: Mapping[str, str], rounds: Sequence[int]) -> dict[str, str]:
    """The header's facts about these configurations."""
    return {
        "data": in_common([config.data.name for config in configs]),
        "model": in_common([config.model.name for config in configs]),
        "clients": in_common([config.federation.clients for config in configs]),
        "rounds": in_common(rounds),
        "device": environment.get("device", NONE),
        "torch": environment.get("torch", NONE),
    }
