"""Axes, lines and heat maps: what is drawn lies where the numbers say."""

from __future__ import annotations

import json
import re

import pytest

from fedvote.report.axis import axis_from_zero, log_axis, percent_axis
from fedvote.report.client_maps import data_map
from fedvote.report.heat import SHADES, HeatMap, heat_map, label_stride, row_pixels, shade
from fedvote.report.lines import Point, Series, line_chart
from fedvote.report.number_text import brief, decimal
from fedvote.report.read_run import Clients


@pytest.mark.parametrize("values", [[61.2, 97.3], [9.8, 11.3], [99.9, 99.95], [0.0, 0.1], [50.0], [0.0, 100.0]])
def test_a_percent_axis_holds_its_data_stays_within_0_and_100_and_has_a_few_ticks(values: list[float]) -> None:
    axis = percent_axis(values)
    assert 0 <= axis.low <= min(values) and max(values) <= axis.high <= 100
    assert 3 <= len(axis.ticks) <= 8
    assert all(0 <= axis.at(tick) <= 1 + 1e-9 for tick in axis.ticks)


def test_a_percent_axis_ends_on_round_numbers() -> None:
    assert percent_axis([61.2, 97.3]).ticks == (60, 70, 80, 90, 100)


@pytest.mark.parametrize("rounds", [1, 2, 10, 137, 4000])
def test_rounds_are_labelled_with_whole_numbers(rounds: int) -> None:
    ticks = axis_from_zero(rounds, whole=True).ticks
    assert 2 <= len(ticks) <= 8
    assert all(tick == int(tick) <= rounds for tick in ticks)


def test_equal_ratios_are_equal_steps_on_a_logarithmic_axis() -> None:
    axis = log_axis(0.1, 1000)
    assert [axis.at(value) for value in (0.1, 1, 10, 100, 1000)] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert axis.ticks == pytest.approx((0.1, 1, 10, 100, 1000))


def test_a_line_goes_through_its_points_upwards_for_larger_values() -> None:
    series = Series("s", 0, "solid", (), (Point(0, 60, ""), Point(5, 70, ""), Point(10, 100, "")))
    chart = line_chart("label", [series], axis_from_zero(10), percent_axis([60, 100]), "x", str)
    assert 'd="M0.0 1000.0L500.0 750.0L1000.0 0.0"' in chart


def test_labels_of_axes_have_the_separators_of_tables() -> None:
    series = Series("s", 0, "solid", (), (Point(0, 0, ""), Point(12_000, 30_000, "")))
    axes = axis_from_zero(12_000), axis_from_zero(30_000)
    chart = line_chart("label", [series], *axes, "x", lambda value: brief(value, 4))
    labels = re.findall(r"<span[^>]*>([^<]+)</span>", chart)
    assert labels[:2] == ["0", "5,000"] and labels[-1] == "12,000" and labels[-2] == decimal(10_000)


def test_whatever_is_not_nothing_has_a_shade_and_the_largest_value_the_last() -> None:
    assert [shade(value, 1000) for value in (0, 1, 500, 1000)] == [0, 1, SHADES // 2, SHADES]
    assert shade(0, 0) == 0


def cells_drawn(markup: str) -> set[tuple[int, int]]:
    return {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", markup.split('class="plot"')[1])}


def test_every_cell_with_a_value_is_drawn_once_and_no_other() -> None:
    heat = HeatMap("h", ["0", "1"], ["1", "2", "3"], [[0.5, None, 0], [None, 0.1, 0.2]], "client", "round", "weight")
    markup = heat_map(heat)
    assert cells_drawn(markup) == {(0, 0), (2, 0), (1, 1), (2, 1)}
    assert len(re.findall("h1v1h-1z", markup)) == 4


@pytest.mark.parametrize("clients", [1, 10, 31, 100, 300, 5000])
def test_a_map_is_neither_flat_nor_endless(clients: int) -> None:
    assert 20 <= clients * row_pixels(clients) <= 1200.01


@pytest.mark.parametrize(("count", "room", "each"), [(10, 800, 13), (62, 230, 20), (300, 900, 13), (5000, 1200, 13)])
def test_labels_never_need_more_room_than_there_is(count: int, room: float, each: float) -> None:
    assert count / label_stride(count, room, each) * each <= room


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (10, 10), (31, 10), (100, 62), (300, 62)])
def test_a_data_map_keeps_every_count(clients: int, classes: int) -> None:
    counts = tuple(tuple((7 * row + column) % 13 for column in range(classes)) for row in range(clients))
    markup = data_map(Clients(tuple(map(str, range(classes))), counts, frozenset({"0"})))
    block = re.search(r'<script type="application/json">(.*?)</script>', markup)
    assert block is not None
    data = json.loads(block[1])
    assert tuple(map(tuple, data["cells"])) == counts
    assert data["rows"][0] == "client 0 (hostile)"
