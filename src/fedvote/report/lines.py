"""Line charts: series in, a figure out. The drawing stretches with the page; the labels, which are text, do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from fedvote.report.axis import Axis
from fedvote.report.line_look import colour_style
from fedvote.report.markup import Html, data_block, join, tag
from fedvote.report.number_text import brief

MOST_DOTS = 30
"""A line with more points has no dots: they would overlap."""

DASH = 12
"""Pixels that each of several equal lines draws in turn."""

SIZE = 1000
"""Side of the drawing, a square that the page stretches to any shape."""


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    note: str  # the heading of the tooltip
    spread: float = 0  # half of the height of the band around the line


@dataclass(frozen=True)
class Series:
    name: str
    colour: int
    dash: str  # classes of the style sheet: its kind, and its pattern
    tokens: tuple[str, ...]  # the keys of the legend that hide it
    points: tuple[Point, ...]
    turn: tuple[int, int] = (0, 1)  # which of how many equal lines this is: they share the path, dash by dash


@dataclass(frozen=True)
class LegendKey:
    token: str
    label: str
    colour: int | None
    dash: str


def line_chart(
    label: str, series: Sequence[Series], x: Axis, y: Axis, x_name: str, show: Callable[[float], str],
    keys: Sequence[LegendKey] = (), hidden: Collection[str] = (),
) -> Html:  # fmt: skip
    """A chart with its legend. `show` writes a y value; legend keys in `hidden` start switched off."""
    plot = tag("div", drawing(label, series, x, y, hidden), class_="plot")
    frame = tag("div", y_labels(y, show), plot, x_labels(x), tag("div", x_name, class_="axis-name"), class_="frame")
    return join(legend(keys, hidden) if keys else "", frame, data_block(chart_data(series, x, y, show)))


def legend(keys: Sequence[LegendKey], hidden: Collection[str] = ()) -> Html:
    """Buttons that show and hide the lines of all charts beside the legend."""

    def button(key: LegendKey) -> Html:
        sample = tag("svg", tag("path", d="M2 5h36", class_=key.dash), viewBox="0 0 40 10", aria_hidden="true")
        pressed = "false" if key.token in hidden else "true"
        style = colour_style(key.colour)
        return tag("button", sample, key.label, type="button", aria_pressed=pressed, data_token=key.token, style=style)

    return tag("div", *map(button, keys), class_="legend", role="group", aria_label="Lines shown")


def drawing(
    label: str, series: Sequence[Series], x: Axis, y: Axis, hidden: Collection[str] = (), **size: object
) -> Html:
    """Grid and lines as SVG. `size`: width and height, if it lies inside another drawing."""
    grid = "".join(f"M0 {SIZE * (1 - y.at(tick)):.1f}h{SIZE}" for tick in y.ticks)
    grid += "".join(f"M{SIZE * x.at(tick):.1f} 0v{SIZE}" for tick in x.ticks)
    lines = [line(each, x, y, off=not set(each.tokens).isdisjoint(hidden)) for each in series]
    return tag(
        "svg", tag("title", label), tag("path", d=grid, class_="grid"), *lines,
        viewBox=f"0 0 {SIZE} {SIZE}", preserveAspectRatio="none", role="img", aria_label=label, **size,
    )  # fmt: skip


def line(series: Series, x: Axis, y: Axis, *, off: bool) -> Html:
    places = [f"{SIZE * x.at(point.x):.1f} {SIZE * (1 - y.at(point.y)):.1f}" for point in series.points]
    path = tag("path", d="M" + "L".join(places), class_=series.dash, style=dashes(series)) if places else Html()
    # a dot is a line of length 0 with round caps: it stays round when the drawing is stretched
    dots = "".join(f"M{place}h0" for place in places) if len(places) <= MOST_DOTS else ""
    spreads = any(point.spread for point in series.points)
    around = tag("path", d=band(series, x, y), class_="band") if spreads else Html()
    shown, tokens, style = "series off" if off else "series", " ".join(series.tokens), colour_style(series.colour)
    return tag("g", path, tag("path", d=dots, class_="dots"), around, class_=shown, data_tokens=tokens, style=style)


def edges(points: Sequence[Point]) -> list[float]:
    """Where the bands around these points begin and end."""
    return [edge for point in points for edge in (point.y - point.spread, point.y + point.spread)]


def band(series: Series, x: Axis, y: Axis) -> str:
    """The outline of the band around a line: along its upper edge, and back along the lower one."""

    def place(point: Point, value: float) -> str:
        height = min(1.0, max(0.0, y.at(value)))
        return f"{SIZE * x.at(point.x):.1f} {SIZE * (1 - height):.1f}"

    upper = [place(point, point.y + point.spread) for point in series.points]
    lower = [place(point, point.y - point.spread) for point in reversed(series.points)]
    return "M" + "L".join([*upper, *lower]) + "z"


def dashes(series: Series) -> str | None:
    """The dashes of one of several equal lines: they draw in turns, so that all of their colours are seen."""
    turn, of = series.turn
    if of == 1:
        return None
    return f"stroke-dasharray: {DASH} {DASH * (of - 1)}; stroke-dashoffset: {-DASH * turn}"


def y_labels(y: Axis, show: Callable[[float], str]) -> Html:
    spans = [tag("span", show(tick), style=f"top: {100 * (1 - y.at(tick)):.2f}%") for tick in y.ticks]
    return tag("div", *spans, class_="y-labels", aria_hidden="true")


def x_labels(x: Axis) -> Html:
    spans = [tag("span", brief(tick), style=f"left: {100 * x.at(tick):.2f}%") for tick in x.ticks]
    return tag("div", *spans, class_="x-labels", aria_hidden="true")


def chart_data(series: Sequence[Series], x: Axis, y: Axis, show: Callable[[float], str]) -> list[dict[str, object]]:
    """The tooltips: place and text of every point."""

    def points(each: Series) -> list[list[object]]:
        return [[round(x.at(p.x), 4), round(1 - y.at(p.y), 4), p.note, value(p)] for p in each.points]

    def value(point: Point) -> str:
        return show(point.y) + (f" ± {point.spread:.2g}" if point.spread else "")

    return [{"name": each.name, "points": points(each)} for each in series]
