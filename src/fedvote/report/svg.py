"""A line chart as an SVG file: title, labels and legend are text in the drawing, on white."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

from fedvote.report.axis import Axis
from fedvote.report.line_look import colour_style
from fedvote.report.lines import LegendKey, Series, drawing
from fedvote.report.markup import Html, tag
from fedvote.report.number_text import brief

WIDTH, HEIGHT = 520, 260
"""Size of the plot, without its margins."""

LEFT, TOP, RIGHT, BOTTOM = 56, 44, 170, 52
ROW, LETTER = 20, 7.5
"""Of the legend: the height of a line, and the mean width of a letter, at most."""

STYLE = """svg { overflow: visible; }
text { fill: var(--soft); font: 12px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
.title { fill: var(--ink); font-size: 15px; font-weight: 600; }
.key { fill: var(--ink); }
.box { fill: var(--card); }
.dots { stroke-width: 5; }
.dashed { stroke-width: 1.5; stroke-dasharray: 4 8; }
.dashed + .dots { display: none; }
"""


def line_svg(
    label: str, series: Sequence[Series], x: Axis, y: Axis, x_name: str, show: Callable[[float], str],
    keys: Sequence[LegendKey],
) -> str:  # fmt: skip
    """The same chart as `line_chart`. The plot is at least as high as the legend, which has room for its words."""
    high = max(HEIGHT, ROW * len(keys))
    words = LETTER * max((len(key.label) for key in keys), default=0)
    width, height = LEFT + WIDTH + max(RIGHT, round(60 + words)), TOP + high + BOTTOM
    down = [text(show(tick), LEFT - 10, TOP + high * (1 - y.at(tick)) + 4, text_anchor="end") for tick in y.ticks]
    across = [text(brief(tick), LEFT + WIDTH * x.at(tick), TOP + high + 20) for tick in x.ticks]
    chart = tag(
        "svg", tag("style", Html(style())), tag("path", d=f"M0 0h{width}v{height}h-{width}z", class_="box"),
        text(label, LEFT, 24, text_anchor="start", class_="title"),
        *down, *across, text(x_name, LEFT + WIDTH / 2, TOP + high + 42),
        tag("g", drawing(label, series, x, y, width=WIDTH, height=high), transform=f"translate({LEFT} {TOP})"),
        *(entry(key, TOP + ROW * (row + 0.5)) for row, key in enumerate(keys)),
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height,
    )  # fmt: skip
    return chart + "\n"


def style() -> str:
    return files("fedvote.report").joinpath("chart.css").read_text(encoding="utf-8") + STYLE


def text(words: str, x: float, y: float, text_anchor: str = "middle", class_: str | None = None) -> Html:
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=text_anchor, class_=class_)


def entry(key: LegendKey, y: float) -> Html:
    """A sample of the line, and its name beside it."""
    left = LEFT + WIDTH + 16
    sample = tag("path", d=f"M{left} {y:.1f}h36", class_=key.dash, style=colour_style(key.colour))
    return tag("g", sample, text(key.label, left + 44, y + 4, text_anchor="start", class_="key"))
