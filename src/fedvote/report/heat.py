"""Heat maps, one row a client. Cells of one shade share one path: even hundreds of clients make a small page."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fedvote.report.markup import Html, data_block, join, tag
from fedvote.report.number_text import brief

SHADES = 20
"""Shades of values above 0, up to the largest. Zero is shade 0."""

MOST_PIXELS = 1200
"""Height of a map at most: rows of very large federations are thinner than a pixel."""

Cells = Sequence[Sequence[float | None]]
"""Values by row and column; None: no value."""


@dataclass(frozen=True)
class HeatMap:
    label: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Cells
    row_name: str
    column_name: str
    unit: str
    empty: str = ""  # the tooltip's text for a cell that is None
    marked: Collection[str] = ()  # rows with a stripe beside them
    mark_name: str = ""
    totals: str = ""  # the heading of the bars of row sums; empty: no bars
    widest: int = 64  # pixels of a column, at most
    written: bool = False  # whether each cell shows its number


def shade(value: float, largest: float) -> int:
    """A value's shade, rounded up: every value above 0 can be seen."""
    return min(SHADES, math.ceil(SHADES * value / largest)) if value > 0 and largest > 0 else 0


def row_pixels(rows: int) -> float:
    return min(MOST_PIXELS / rows, max(3, min(26, 560 // rows)))


def heat_map(heat: HeatMap) -> Html:
    pixels = row_pixels(len(heat.rows))
    upright = max(map(len, heat.columns)) > 4
    label_pixels = 14 if upright else 7 * max(map(len, heat.columns)) + 6
    deep = f"{min(16, max(map(len, heat.columns))) * 0.6:.1f}em" if upright else "1.3em"
    size = f"--rows: {pixels * len(heat.rows):.0f}px; --widest: {heat.widest * len(heat.columns)}px; --deep: {deep}"
    frame = tag(
        "div",
        row_labels(heat, pixels),
        stripes(heat),
        tag("div", drawing(heat, gaps=pixels >= 8), values(heat), class_="plot"),
        totals(heat),
        column_labels(heat.columns, label_pixels, upright=upright),
        tag("div", heat.column_name, class_="axis-name"),
        tag("div", heat.totals, class_="totals-name") if heat.totals else "",
        class_="frame heat with-totals" if heat.totals else "frame heat",
        style=size,
    )
    return join(scale_key(heat), frame, data_block(chart_data(heat)))


def largest_of(cells: Cells) -> float:
    return max((value for row in cells for value in row if value is not None), default=0)


def drawing(heat: HeatMap, *, gaps: bool) -> Html:
    largest, paths = largest_of(heat.cells), [list[str]() for _ in range(SHADES + 1)]
    for y, row in enumerate(heat.cells):
        for x, value in enumerate(row):
            if value is not None:
                paths[shade(value, largest)].append(f"M{x} {y}h1v1h-1z")
    shades = [tag("path", d="".join(path), style=shade_style(level)) for level, path in enumerate(paths) if path]
    return tag(
        "svg", tag("title", heat.label), *shades, viewBox=f"0 0 {len(heat.columns)} {len(heat.rows)}",
        preserveAspectRatio="none", role="img", aria_label=heat.label, class_="gaps" if gaps else None,
    )  # fmt: skip


def values(heat: HeatMap) -> Html:
    """The numbers in the cells, light on dark shades. Zeros stay empty: the others stand out."""
    if not heat.written:
        return Html()
    largest, across, down = largest_of(heat.cells), 100 / len(heat.columns), 100 / len(heat.rows)
    spans = [
        tag("span", brief(value, 4), style=f"left: {across * (x + 0.5):.2f}%; top: {down * (y + 0.5):.2f}%",
            class_="on-dark" if shade(value, largest) > SHADES / 2 else None)
        for y, row in enumerate(heat.cells) for x, value in enumerate(row) if value
    ]  # fmt: skip
    return tag("div", *spans, class_="values", aria_hidden="true")


def shade_style(level: int) -> str:
    """Linear in the level, but the first shade differs visibly from zero."""
    return f"--shade: {0 if level == 0 else 6 + 94 * level / SHADES:.0f}%"


def stripes(heat: HeatMap) -> Html:
    path = "".join(f"M0 {y}h1v1h-1z" for y, row in enumerate(heat.rows) if row in heat.marked)
    return tag("div", strip(1, len(heat.rows), path), class_="stripes", aria_hidden="true")


def totals(heat: HeatMap) -> Html:
    if not heat.totals:
        return Html()
    sums = [sum(value or 0 for value in row) for row in heat.cells]
    path = "".join(f"M0 {y}.1h{total}v.8h-{total}z" for y, total in enumerate(sums))
    return tag("div", strip(max(*sums, 1), len(heat.rows), path), class_="totals", aria_hidden="true")


def strip(width: float, height: int, path: str) -> Html:
    """A drawing beside the map, row by row."""
    box = f"0 0 {width} {height}"
    return tag("svg", tag("path", d=path), viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def label_stride(count: int, room: float, each: float) -> int:
    """The smallest of 1, 2, 5, 10, ... such that every n-th label fits into the room."""
    strides = (factor * power for power in (1, 10, 100, 1000, 10_000) for factor in (1, 2, 5))
    return next(stride for stride in strides if stride * room >= count * each)


def first_number(names: Sequence[str]) -> int:
    """The number of the first label, so that labels stand at round numbers."""
    return int(names[0]) if names[0].isdecimal() else 0


def row_labels(heat: HeatMap, pixels: float) -> Html:
    stride, first = label_stride(len(heat.rows), pixels * len(heat.rows), 13), first_number(heat.rows)
    spans = [
        tag("span", name, style=f"top: {100 * (y + 0.5) / len(heat.rows):.2f}%",
            class_="marked" if name in heat.marked else None)
        for y, name in enumerate(heat.rows) if (y + first) % stride == 0
    ]  # fmt: skip
    return tag("div", tag("b", heat.row_name), *spans, class_="y-labels", aria_hidden="true")


def column_labels(columns: Sequence[str], each: float, *, upright: bool) -> Html:
    """Labels below the map. A narrow screen hides those of the class `wide`."""
    wide, narrow = label_stride(len(columns), 800, each), label_stride(len(columns), 230, each)
    first = first_number(columns)
    spans = [
        tag("span", name, style=f"left: {100 * (x + 0.5) / len(columns):.2f}%",
            class_="wide" if (x + first) % narrow else None)
        for x, name in enumerate(columns) if (x + first) % wide == 0
    ]  # fmt: skip
    return tag("div", *spans, class_="x-labels upright" if upright else "x-labels", aria_hidden="true")


def scale_key(heat: HeatMap) -> Html:
    boxes = join(tag("i", class_="zero"), tag("i", class_="shades"))
    scale = tag("span", "0 ", boxes, f" {brief(largest_of(heat.cells), 4)} {heat.unit}")
    absent = any(value is None for row in heat.cells for value in row)
    hatched = tag("span", tag("i", class_="hatch"), f" {heat.empty}") if absent else Html()
    marked = any(row in heat.marked for row in heat.rows)
    mark = tag("span", tag("i", class_="mark"), f" {heat.mark_name}") if marked else Html()
    return tag("div", scale, hatched, mark, class_="scale")


def chart_data(heat: HeatMap) -> dict[str, object]:
    """The tooltips of all cells."""
    rows = [f"{heat.row_name} {row}" + (f" ({heat.mark_name})" if row in heat.marked else "") for row in heat.rows]
    columns = [f"{heat.column_name} {column}" for column in heat.columns]
    return {"rows": rows, "columns": columns, "cells": heat.cells, "unit": heat.unit, "empty": heat.empty}
