"""What a method puts on record is drawn, a chart for each number, and nothing is where it put nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedvote.engines.simulate import simulate
from fedvote.methods import METHODS
from fedvote.report import write_report
from fedvote.report.axis import TINY, value_axis
from fedvote.report.measured import in_words, method_measurements, points
from fedvote.report.over_seeds import groups_of
from fedvote.report.read_run import read_runs
from tests import toy
from tests.report.pages import MakeRun


def test_every_number_of_a_method_has_a_chart_with_a_point_a_round(make_run: MakeRun) -> None:
    folder = make_run(rounds=3, measured={"flipped": 0.25, "drift <b>": -2.0})
    (group,) = groups_of(read_runs([folder]))
    assert [(point.x, point.y) for point in points(group, "flipped")] == [(1, 0.25), (2, 0.25), (3, 0.25)]
    page = write_report([folder], folder / "report.html").read_text()
    assert page.count("What the method measured") == 1
    assert "drift &lt;b&gt;" in page and "drift <b>" not in page


@pytest.mark.parametrize("name", METHODS)
def test_every_number_that_a_method_measures_is_explained(name: str) -> None:
    (snapshot,) = simulate(toy.module(), toy.dataset(), METHODS[name](), clients=3, rounds=1, steps=1, batch=8)
    for number in snapshot.record.get("measured", {}):
        title, _, sentence = METHODS[name].explains[number].partition(": ")
        assert title and sentence.endswith(".") and in_words(number, []) == (title, sentence)


def test_numbers_of_ones_own_method_are_explained_by_it(make_run: MakeRun) -> None:
    folder = make_run(rounds=2, measured={"drift": 1.0, "speed_up": 2.0})
    (folder / "environment.json").write_text(
        json.dumps({"measured": {"drift": "Client drift: how far apart they are."}})
    )
    page = write_report([folder], folder / "report.html").read_text()
    assert "Client drift" in page and "how far apart they are." in page
    assert "speed up" in page and "Recorded by the method as speed_up." in page


def test_a_run_that_measured_nothing_has_no_such_section(make_run: MakeRun) -> None:
    assert method_measurements(groups_of(read_runs([make_run()]))) is None


def test_rounds_and_runs_without_the_number_have_no_point(make_run: MakeRun) -> None:
    first, second = make_run("first", rounds=2), make_run("second", rounds=2, measured={"flipped": 0.1})
    lines = (second / "metrics.jsonl").read_text().splitlines()
    short = {name: value for name, value in json.loads(lines[0]).items() if name != "measured"}
    (second / "metrics.jsonl").write_text(f"{json.dumps(short)}\n{lines[1]}\n")
    groups = groups_of(read_runs([first, second]))
    assert [[point.x for point in points(group, "flipped")] for group in groups] == [[], [2]]
    assert method_measurements(groups)


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=5))
def test_an_axis_holds_all_values_and_zero(values: list[float]) -> None:
    axis = value_axis(values)
    drawn = [value if abs(value) > TINY else 0 for value in values]
    assert axis.low <= min(*drawn, 0) and axis.high >= max(*drawn, 0)
    assert axis.at(axis.low) == 0 and axis.at(axis.high) == pytest.approx(1)
