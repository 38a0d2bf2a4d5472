"""A statement of the paper beside what was measured: rows, and a chart with a logarithmic axis for each case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fedvote.report.axis import axis_from_zero, log_axis
from fedvote.report.chart import Chart, Page, panels, series_of
from fedvote.report.html_tables import table as as_html
from fedvote.report.lines import Point
from fedvote.report.number_text import brief
from fedvote.report.sections import section
from fedvote.studies.rows import Rows, cells, table

Curves = Mapping[str, Mapping[float, float]]
"""Line -> x -> y; values of 0 have no place on a logarithmic axis and are left out."""


@dataclass(frozen=True)
class Checked:
    """Both sides of inequalities, as rows and as curves."""

    about: str
    explain: str
    rows: Rows  # a table; lists in it go into the file alone
    curves: Mapping[str, Curves]  # case -> its lines
    x_name: str
    made_by: Mapping[str, Any]  # seeds, environment, settings

    def numbers(self) -> dict[str, Any]:
        return {**self.made_by, "rows": self.rows}

    def page(self) -> Page:
        charts = [chart(case, lines, self.x_name) for case, lines in self.curves.items()]
        facts = {"device": self.made_by["environment"]["device"], "seeds": ", ".join(map(str, self.made_by["seeds"]))}
        shown = section("Measured and bounded", panels(charts), as_html(*cells(self.rows), "numbers"))
        return Page(self.about, facts, [section("Statement", explain=self.explain), shown], charts)

    def text(self) -> str:
        return table(self.rows)


def chart(case: str, curves: Curves, x_name: str) -> Chart:
    names = list(curves)
    lines = tuple(
        series_of(name, names, [Point(x, y, f"{x:g}") for x, y in curves[name].items() if y > 0]) for name in names
    )
    points = [point for line in lines for point in line.points]
    y = log_axis(min(point.y for point in points) / 1.2, max(point.y for point in points) * 1.2)
    x = axis_from_zero(max(point.x for point in points), whole=True)
    return Chart(re.sub(r"[^\w.]+", "-", case), case, lines, x, x_name, y, show=partial(brief, digits=3))
