"""Runs with the same curve can be told apart: they are drawn in turns, and named."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from fedvote.report import write_report
from fedvote.report.equal_lines import told_apart
from fedvote.report.line_look import patterned
from fedvote.report.lines import DASH, Point, Series
from tests.report.pages import MakeRun


def series(name: str, *ys: float) -> Series:
    return Series(name, 0, "solid", (name,), tuple(Point(x, y, "") for x, y in enumerate(ys)))


def test_equal_lines_take_turns_and_others_do_not() -> None:
    a, b, c, d = told_apart([series("a", 1, 2), series("b", 1, 2), series("c", 1, 3), series("d", 1, 2)])
    assert [each.turn for each in (a, b, c, d)] == [(0, 3), (1, 3), (0, 1), (2, 3)]


def test_the_pattern_of_a_line_keeps_no_equal_line_from_its_turn() -> None:
    """Or a solid line would hide the dashes of an equal one of the same colour."""
    first, eighth = series("a", 1, 2), replace(series("b", 1, 2), dash=patterned("solid", 7))
    assert [each.turn for each in told_apart([first, eighth])] == [(0, 2), (1, 2)]


def test_a_comparison_names_runs_with_the_same_line(make_run: MakeRun, tmp_path: Path) -> None:
    first, other = make_run("first"), make_run("other", ceiling=0.9)
    shutil.copytree(first, tmp_path / "twin")
    page = write_report([first, tmp_path / "twin", other], tmp_path / "page.html").read_text()
    assert "first and twin have the same line, drawn in turns." in page
    offsets = re.findall(rf"stroke-dasharray: {DASH} {DASH}; stroke-dashoffset: (-?\d+)", page)
    assert set(offsets) == {"0", str(-DASH)}


def test_different_runs_are_drawn_as_ever(make_run: MakeRun, tmp_path: Path) -> None:
    page = write_report([make_run("a"), make_run("b", ceiling=0.9)], tmp_path / "page.html").read_text()
    assert "stroke-dashoffset" not in page and "have the same line" not in page
