"""Runs that differ only in their seed share a line, a band and a row; every other run has its own."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest

from fedvote.report import write_report
from fedvote.report.axis import axis_from_zero, percent_axis
from fedvote.report.lines import Point, Series, chart_data, line
from fedvote.report.over_seeds import Group, groups_of
from fedvote.report.read_run import read_runs
from fedvote.report.sections import points
from tests.report.pages import MakeRun


def with_seed(folder: Path, seed: int) -> Path:
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("seed = 0", f"seed = {seed}"))
    return folder


def seeds_of(make_run: MakeRun, name: str, *seeds: int, **options: object) -> list[Path]:
    return [with_seed(make_run(f"{name}{seed}", **options), seed) for seed in seeds]


def names(*folders: Path) -> list[str]:
    return [group.name for group in groups_of(read_runs(folders))]


def rows_of(page: str, title: str) -> list[list[str]]:
    (body,) = re.findall(rf"{title}</h2>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]


def test_runs_that_differ_in_their_seed_alone_are_averaged(make_run: MakeRun, tmp_path: Path) -> None:
    same = [with_seed(make_run(f"votes-{seed}", accuracy=0.8 + 0.1 * seed), seed) for seed in (0, 1)]
    other = with_seed(make_run("other", method="another", accuracy=0.5), 2)
    page = write_report([*same, other], tmp_path / "page.html").read_text().replace("\u202f", " ")
    assert [[re.sub("<.*?>", "", cell) for cell in row[:2]] for row in rows_of(page, "Over seeds")] == [
        ["votes", "85.00 ± 7.07 %"], ["other", "50.00 %"],
    ]  # fmt: skip
    assert [re.sub("<.*?>", "", row[0]) for row in rows_of(page, "Every run")] == ["votes-0", "votes-1", "other"]
    alone = write_report([same[0], other], tmp_path / "page.html").read_text()
    assert "Over seeds" not in alone and "standard deviation" not in alone


def test_the_same_seed_twice_is_no_average(make_run: MakeRun) -> None:
    assert names(make_run("a"), make_run("b")) == ["a", "b"]


def test_a_run_that_is_not_as_far_stays_apart(make_run: MakeRun) -> None:
    done, behind = seeds_of(make_run, "run-", 0, 1)
    lines = (behind / "metrics.jsonl").read_text().splitlines(keepends=True)
    (behind / "metrics.jsonl").write_text("".join(lines[:4]))
    assert names(done, behind) == ["run-0", "run-1"]


@pytest.mark.parametrize(
    ("beginning", "name"),
    [("votes-", "votes"), ("lr=0.1,seed=", "lr=0.1"), ("seed-", "seed-0, seed-1"), ("", "0, 1")],
)
def test_a_group_has_the_name_that_its_runs_share(make_run: MakeRun, beginning: str, name: str) -> None:
    assert names(*seeds_of(make_run, beginning, 0, 1)) == [name]


def test_folders_of_seeds_give_groups_their_names(make_run: MakeRun) -> None:
    first, second = (seeds_of(make_run, f"{name}/seed-", 0, 1, method=name) for name in ("a", "b"))
    assert names(*first, *second) == ["a", "b"]


def test_groups_that_share_a_beginning_have_all_their_names(make_run: MakeRun) -> None:
    first = [with_seed(make_run(f"run-{seed}"), seed) for seed in (0, 1)]
    second = [with_seed(make_run(f"run-{seed + 2}", method="other"), seed) for seed in (0, 1)]
    assert names(*first, *second) == ["run-0, run-1", "run-2, run-3"]


def test_a_line_of_seeds_is_their_mean_and_its_band_their_deviation(make_run: MakeRun) -> None:
    runs = read_runs(seeds_of(make_run, "votes-", 0, 1, 2, rounds=4))
    found = points(Group("votes", runs), "accuracy", lambda run: run.round_numbers, "")
    for index, point in enumerate(found):
        values = [100 * run.rounds[index]["accuracy"] for run in runs]
        assert point.x == index + 1
        assert (point.y, point.spread) == pytest.approx((statistics.mean(values), statistics.stdev(values)))


def test_a_round_that_one_seed_did_not_measure_has_no_point(make_run: MakeRun) -> None:
    first, second = seeds_of(make_run, "votes-", 0, 1, rounds=3)
    lines = [json.loads(line) for line in (second / "metrics.jsonl").read_text().splitlines()]
    lines[1]["accuracy"] = None
    (second / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    group = Group("votes", read_runs([first, second]))
    assert [point.x for point in points(group, "accuracy", lambda run: run.round_numbers, "")] == [1, 3]


def test_a_band_goes_along_both_edges_and_stays_within_the_plot() -> None:
    series = Series("s", 0, "solid", (), (Point(0, 50, "", 10), Point(10, 95, "", 20)))
    x, y = axis_from_zero(10), percent_axis([0, 100])
    outline = "M0.0 400.0L1000.0 0.0L1000.0 250.0L0.0 600.0z"
    assert f'd="{outline}" class="band"' in line(series, x, y, off=False)
    assert [point[3] for point in chart_data([series], x, y, str)[0]["points"]] == ["50 ± 10", "95 ± 20"]  # type: ignore[attr-defined]
    plain = Series("s", 0, "solid", (), (Point(0, 50, ""),))
    assert "band" not in line(plain, x, y, off=False)


@pytest.mark.parametrize("beginning", ["lr=0.1,seed=", "lr=0.1-", "lr=0.1_seed"])
def test_digits_that_seeds_share_are_no_part_of_a_name(make_run: MakeRun, beginning: str) -> None:
    assert names(*seeds_of(make_run, beginning, 10, 11)) == ["lr=0.1"]


def judged_by(name: str, percent: bool = False) -> dict[str, object]:
    return {"metric": {"name": name, "percent": percent, "higher_is_better": False}}


def test_a_small_error_keeps_its_digits_over_seeds(make_run: MakeRun, tmp_path: Path) -> None:
    values = {0: 0.0012, 1: 0.0014}
    runs = [with_seed(make_run(f"mse-{seed}", mse=mse, **judged_by("mse")), seed) for seed, mse in values.items()]
    page = write_report(runs, tmp_path / "page.html").read_text()
    assert rows_of(page, "Over seeds")[0][1] == "0.00130 ± 0.000141"


def test_a_seed_that_ends_without_a_number_is_counted(make_run: MakeRun, tmp_path: Path) -> None:
    values = {0: 0.5, 1: 0.7, 2: None}
    runs = [with_seed(make_run(f"votes-{seed}", accuracy=value), seed) for seed, value in values.items()]
    page = write_report(runs, tmp_path / "page.html").read_text().replace("\u202f", " ")
    assert rows_of(page, "Over seeds")[0][1] == "60.00 ± 14.14 % in 2 of 3 runs"


def test_a_seed_of_any_kind_is_read(make_run: MakeRun) -> None:
    folder = make_run("a")
    (folder / "config.toml").write_text("seed = [1, 2]\n")
    assert names(folder, make_run("b")) == ["a", "b"]
