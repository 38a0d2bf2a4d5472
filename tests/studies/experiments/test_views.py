"""What is shown of runs follows from their records, and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedvote.report.chart import Chart
from fedvote.report.number_text import spread
from fedvote.runs.config import read
from fedvote.studies.experiments.both_ways import both_ways
from fedvote.studies.experiments.cells import Cell, Record, Runs
from fedvote.studies.experiments.views import by_bytes, by_number, by_round, grid

SHARE = st.floats(0, 1)


def records(accuracies: Sequence[float | None], nbytes: int = 10**8) -> list[Record]:
    sent = {"uplink_bytes": nbytes, "downlink_bytes": 2 * nbytes} | {
        f"{way}_bits_per_weight": bits for way, bits in (("uplink", 0.5), ("downlink", 1.0))
    }
    measured = ({} if value is None else {"accuracy": value, "accuracy_float": value / 2} for value in accuracies)
    return [{"round": index, **sent, **one} for index, one in enumerate(measured, start=1)]


def runs(row: str, *seeds: Sequence[float | None], column: str = "", nbytes: int = 10**8) -> Runs:
    cell = Cell(row, "quickstart", column=column, printed={"accuracy": 12.3})
    return Runs(cell, read("quickstart"), {seed: records(each, nbytes) for seed, each in enumerate(seeds)})


def points(chart: Chart, name: str) -> list[tuple[float, float]]:
    return next([(point.x, point.y) for point in each.points] for each in chart.series if each.name == name)


@given(st.lists(SHARE, min_size=1, max_size=5), st.lists(SHARE, min_size=1, max_size=5))
def test_a_line_has_the_mean_of_every_round_that_all_seeds_have(first: list[float], second: list[float]) -> None:
    view = by_round([runs("some", first, second)])
    means = [(index, 50 * (a + b)) for index, (a, b) in enumerate(zip(first, second, strict=False), start=1)]
    (chart,) = view.charts
    assert points(chart, "some") == [pytest.approx(pair) for pair in means]
    assert view.rows[0][1:3] == [str(len(means)), "2"]


def test_rounds_that_were_not_judged_have_no_point_but_their_bytes_count() -> None:
    view = by_bytes([runs("some", [None, 0.5, None, 0.7])], [0.1, 0.2, 0.3, 0.4])
    assert sum(points(view.charts[0], "some"), ()) == pytest.approx((0.2, 50, 0.4, 70))
    assert list(view.rows[0])[:5] == ["some", "no round yet", spread([0.5]), spread([0.5]), spread([0.7])]


def test_the_last_round_within_a_budget_counts_not_the_best() -> None:
    view = by_bytes([runs("some", [0.9, 0.1, 0.2, 0.5], [0.9, 0.3, 0.4, 0.5])], [0.3])
    assert view.rows[0][1] == spread([0.2, 0.4])


def test_a_run_that_ended_before_a_budget_says_so() -> None:
    """One that could not have sent another round for it did not."""
    view = by_bytes([runs("A", [0.2, 0.9, 0.5]), runs("B", [0.1] * 47)], gigabytes=(0.35, 4.75))
    assert [list(row[1:]) for row in view.rows] == [
        [spread([0.5]), "ended before", f"{spread([0.5])} with 0.300 GB"],
        [spread([0.1]), spread([0.1]), f"{spread([0.1])} with 4.70 GB"],
    ]


def test_numbers_of_attackers_are_in_order_and_what_was_not_run_is_left_open() -> None:
    measured = [runs("a", [0.2], column="10"), runs("a", [0.4], column="5"), runs("b", [0.6], [0.8], column="5")]
    view = by_number(measured)
    assert list(view.head) == ["Rule", "5 hostile", "10 hostile"]
    assert [list(row) for row in view.rows] == [["a", spread([0.4]), spread([0.2])], ["b", spread([0.6, 0.8]), ""]]
    assert points(view.charts[0], "a") == [(5, 40), (10, 20)] and points(view.charts[0], "b") == [(5, 70)]


def test_a_table_has_a_row_a_metric_and_what_is_printed_beside_it() -> None:
    show = grid({"accuracy_float": "float", "accuracy": "binary"}, "Data")
    view = show([runs("x", [0.5], column="left"), runs("y", [0.25], column="right")])
    assert list(view.head) == ["Data", "left", "right"]
    assert [list(row) for row in view.rows] == [
        ["x, float", spread([0.25]), ""],
        ["x, binary", f"{spread([0.5])} (12.3)", ""],
        ["y, float", "", spread([0.125])],
        ["y, binary", "", f"{spread([0.25])} (12.3)"],
    ]


@pytest.mark.parametrize("setting", ["data.name=fashion-mnist", "model.name=lenet5", "rounds=2", "local.steps=3"])
def test_what_the_paper_prints_does_not_stand_beside_another_experiment(setting: str) -> None:
    other = replace(runs("A", [0.5]), config=read("quickstart", [setting]))
    assert "(12.3)" not in grid({"accuracy": ""}, "Rule")([other]).rows[0][1]


@pytest.mark.parametrize("setting", ["seed=3", "engine.compile=true", "flower.quorum=0.9"])
def test_what_the_paper_prints_stands_beside_its_experiment_wherever_it_runs(setting: str) -> None:
    same = replace(runs("A", [0.5]), config=read("quickstart", [setting]))
    assert "(12.3)" in grid({"accuracy": ""}, "Rule")([same]).rows[0][1]


def test_the_last_round_that_was_judged_counts_not_the_best() -> None:
    assert runs("A", [0.2, 0.9, 0.5], [0.7, 0.6, None]).last("accuracy") == [0.5, 0.6]


def test_one_seed_has_no_deviation() -> None:
    assert spread([0.5]) == "50.00\u202f%" and spread([0.4, 0.6]) == "50.00 ± 14.14\u202f%" and spread([]) == ""


def test_the_second_half_of_the_judged_rounds_counts() -> None:
    assert runs("A", [0.1, 0.2, 0.6, 0.8], [0.1, None, 0.5]).second_half("accuracy") == pytest.approx([0.7, 0.5])


def test_traffic_counts_both_directions_until_a_target_is_reached() -> None:
    """300 MB a round; the seeds reach 50 % in rounds 2 and 3, and one of them never 80 %."""
    view = both_ways(0.5, 0.8)([runs("some", [0.1, 0.5, 0.6], [0.1, 0.2, 0.9], column="equal")])
    assert list(view.rows[0])[:3] == ["some, equal", "3", "2"]
    assert list(view.rows[0])[5:] == ["0.500", "1.00", "1.50", "750", "not reached"]
    assert [x for x, _ in points(view.charts[0], "some, equal")] == pytest.approx([300, 600, 900])
