"""A sweep runs every combination once, goes on where it was, and names the best."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fedvote.cli import main
from fedvote.errors import ConfigError
from fedvote.runs.config import read
from fedvote.runs.own_files import digest
from fedvote.runs.progress import traffic_text
from fedvote.runs.sweep import GRIDS, Point, points, sweep
from fedvote.runs.sweep_results import at_the_edge, best, best_of_each, means, save
from tests.own_code import edit

PLAIN, VALIDATED = read("quickstart"), read("quickstart", ["data.validation=0.1"])
FAST = ["rounds=1", "local.steps=2", "federation.clients=3"]


def test_points_are_all_combinations_in_order() -> None:
    assert points(["a=1,2", "b.c=x"]) == [("a=1", "b.c=x"), ("a=2", "b.c=x")]


def test_commas_within_brackets_part_nothing() -> None:
    assert points(['a=["0","12"],["1"]']) == [('a=["0","12"]',), ('a=["1"]',)]


def test_a_method_keeps_what_is_set_for_it(tmp_path: Path) -> None:
    """Whichever comes first; and naming the preset's own method changes nothing."""
    made = list(sweep("quickstart", ["method=fedvote,fedavg"], [*FAST, "method.lr=0.01"], tmp_path / "a", "cpu"))
    assert [read(str(point.folder / "config.toml")).method.lr for point in made] == [0.01, 0.01]
    (same,) = sweep("quickstart", ["method=fedvote"], FAST, tmp_path / "b", "cpu")
    assert read(str(same.folder / "config.toml")).method == read("quickstart").method


def judged(accuracy: float | None, lost: bool = False) -> dict[str, Any]:
    """The record of a round of two clients."""
    others = dict.fromkeys(("accuracy_calibrated", "accuracy_float", "loss"), 0.5)
    sent = {"clients": [0, 1], "uplink_bytes": 9, "downlink_bytes": 5}
    refused = {"refused": dict.fromkeys("01", "no number")} if lost else {}
    return {"round": 1, "accuracy": accuracy, **others, **sent, **refused}


def test_what_was_never_counted_is_not_the_best(tmp_path: Path) -> None:
    failed = Point(("method.lr=9",), tmp_path, [judged(0.9, lost=True), judged(0.9)], PLAIN)
    trained = Point(("method.lr=1",), tmp_path, [judged(0.2), judged(0.3)], PLAIN)
    assert best([failed, trained]).settings == ("method.lr=1",) and best([failed]).settings == ("method.lr=9",)
    assert str(failed).endswith("in 1 of 2 rounds no message counted") and "counted" not in str(trained)


def test_bytes_are_those_of_all_rounds(tmp_path: Path) -> None:
    save([Point(("method.lr=1",), tmp_path, [judged(0.2), judged(0.3)], PLAIN)], tmp_path / "sweep.json")
    (row,) = json.loads((tmp_path / "sweep.json").read_text())["runs"]
    assert (row["uplink_bytes"], row["downlink_bytes"], row["lost_rounds"]) == (18, 10, 0)


def test_seeds_are_averaged(tmp_path: Path) -> None:
    def point(lr: float, seed: int, accuracy: float) -> Point:
        return Point((f"method.lr={lr}", f"seed={seed}"), tmp_path, [judged(accuracy)], VALIDATED)

    done = [point(0.1, 0, 0.9), point(0.1, 1, 0.5), point(0.2, 0, 0.8), point(0.2, 1, 0.8)]
    assert best(done).settings == ("method.lr=0.2",)
    first, second = means(done)
    assert (first.quality, second.quality, second.deviation) == pytest.approx((0.7, 0.8, 0))
    assert "70.0% ± 28.3 (2 seeds)  up 0.009 kB, down 0.005 kB" in str(first)
    save(done, tmp_path / "sweep.json")
    table = json.loads((tmp_path / "sweep.json").read_text())
    assert table["best"] == ["method.lr=0.2"] and [row["seeds"] for row in table["over_seeds"]] == [2, 2]


def test_a_metric_that_is_no_number_is_null_in_the_table(tmp_path: Path) -> None:
    def point(seed: int, accuracy: float | None) -> Point:
        return Point(("method.lr=9", f"seed={seed}"), tmp_path, [{**judged(accuracy), "loss": math.inf}], PLAIN)

    save([point(0, None), point(1, 0.5)], tmp_path / "sweep.json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    table = json.loads((tmp_path / "sweep.json").read_text(), parse_constant=refuse)
    (over_seeds,) = table["over_seeds"]
    assert (over_seeds["accuracy"], over_seeds["deviation"]) == (None, None)
    assert [(row["accuracy"], row["loss"]) for row in table["runs"]] == [(None, None), (0.5, None)]


def test_each_method_is_compared_at_its_best(tmp_path: Path) -> None:
    def point(method: str, lr: float, accuracy: float) -> Point:
        return Point((f"method={method}", f"method.lr={lr}"), tmp_path, [judged(accuracy)], VALIDATED)

    done = [
        point("fedvote", 0.1, 0.9),
        point("fedvote", 0.2, 0.8),
        point("fedavg", 0.1, 0.2),
        point("fedavg", 0.2, 0.3),
    ]
    assert [mean.settings for mean in best_of_each(done)] == [
        ("method=fedvote", "method.lr=0.1"),
        ("method=fedavg", "method.lr=0.2"),
    ]
    assert best_of_each(done[:2]) == []


def test_the_papers_grid_has_its_eight_rates() -> None:
    rates = [float(point[0].removeprefix("method.lr=")) for point in points(["method.lr=paper-grid"])]
    assert rates == [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]


@pytest.mark.parametrize("axis", ["method.lr", "=1,2", "method.lr="])
def test_an_axis_that_is_none_is_refused_naming_the_grids(axis: str) -> None:
    with pytest.raises(ConfigError, match=f"is not of the form .*; grids: {', '.join(GRIDS)}"):
        points([axis])


def test_a_mistake_in_any_value_shows_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lr is -1"):
        next(sweep("quickstart", ["method.lr=0.03,-1.0"], FAST, tmp_path, "cpu"))
    assert not list(tmp_path.iterdir())


def test_a_value_that_does_not_fit_the_data_shows_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^partition\.min_samples=1,?999 cannot run: .*999"):
        next(sweep("quickstart", ["partition.min_samples=1,1999"], FAST, tmp_path, "cpu"))
    assert not list(tmp_path.iterdir())


def test_a_sweep_goes_on_where_it_was_and_writes_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [word for setting in FAST for word in ("--set", setting)]
    whole = ["sweep", "quickstart", "--over", "method.lr=1e-4,3e-2", *sets, "--device", "cpu", "--out", str(tmp_path)]
    next(sweep("quickstart", ["method.lr=1e-4"], FAST, tmp_path, "cpu"))
    first = (tmp_path / "method.lr=1e-4" / "metrics.jsonl").read_bytes()
    with pytest.raises(SystemExit) as stop:
        main(whole)
    assert stop.value.code == 0
    assert (tmp_path / "method.lr=1e-4" / "metrics.jsonl").read_bytes() == first  # not run again: seconds differ
    table = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["settings"] for row in table["runs"]] == [["method.lr=1e-4"], ["method.lr=3e-2"]]
    accuracies = {row["settings"][0]: row["accuracy"] for row in table["runs"]}
    assert accuracies[table["best"][0]] == max(accuracies.values())
    said = capsys.readouterr().out
    assert f"best: {table['best'][0]}" in said and "of its list: a wider list may have a better value" in said
    assert (tmp_path / "report.html").is_file()


def test_bytes_on_the_screen_go_on_with_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rounds in (1, 2):
        (point,) = sweep("quickstart", ["method.lr=0.1"], [*FAST[1:], f"rounds={rounds}"], tmp_path, "cpu")
    assert traffic_text(point.sent("up"), point.sent("down")) in capsys.readouterr().err.splitlines()[-1]


def tabled(out: Path, rounds: int, *settings: tuple[str, ...]) -> bytes:
    """The table of a sweep that had these points, each with this many rounds."""
    records = [judged(0.5) | {"round": index} for index in range(1, rounds + 1)]
    save([Point(point, out, records, PLAIN) for point in settings], out / "sweep.json")
    return (out / "sweep.json").read_bytes()


@pytest.mark.parametrize(
    ("over", "rounds", "problem"),
    [
        ("method.lr=0.1", 1, "has only 1 of them, without method.lr=0.2: choose another folder with --out, or repeat"),
        ("method.lr=0.3,0.4", 1, "has only 0 of them, without method.lr=0.1:"),
        ("method.lr=0.2", 9, "has only 1 of them, without method.lr=0.1:"),
    ],
)
def test_a_sweep_that_would_lose_results_is_refused_before_anything_runs(
    over: str, rounds: int, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tabled(tmp_path, 1, ("method.lr=0.1",), ("method.lr=0.2",))
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "quickstart", "--over", over, "--set", f"rounds={rounds}", "--out", str(tmp_path)])
    said = " ".join(capsys.readouterr().err.split())
    assert stop.value.code == 2 and "sweep.json has the results of 2 runs, and this sweep" in said and problem in said
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]
    assert (tmp_path / "sweep.json").read_bytes() == table


def test_a_sweep_with_more_values_goes_on(tmp_path: Path) -> None:
    tabled(tmp_path, 1, ("method.lr=0.1",))
    done = list(sweep("quickstart", ["method.lr=0.2,0.1"], FAST, tmp_path, "cpu"))
    assert [point.settings for point in done] == [("method.lr=0.2",), ("method.lr=0.1",)]


def test_a_best_number_at_the_edge_of_its_list_is_said(tmp_path: Path) -> None:
    def point(accuracy: float, *settings: str) -> Point:
        return Point(settings, tmp_path, [judged(accuracy)], VALIDATED)

    rates = [point(0.2, "method.lr=1e-1"), point(0.4, "method.lr=0.01"), point(0.3, "method.lr=1.0")]
    assert at_the_edge(rates) == (
        "the best method.lr, 0.01, is the smallest of its list: a wider list may have a better value"
    )
    assert at_the_edge([point(0.9, "method.lr=0.1"), *rates]) == ""
    ideal = {"fedvote": 9, "fedavg": 2}
    methods = [point(-abs(lr - ideal[m]), f"method={m}", f"method.lr={lr}") for m in ideal for lr in (1, 2, 3)]
    assert at_the_edge(methods).startswith("the best method.lr of fedvote, 3, is the largest of its list: a wider")
    assert at_the_edge([point(0.1, "seed=1"), point(0.2, "seed=2")]) == ""
    assert at_the_edge([point(0.1, "method=a"), point(0.2, "method=b")]) == ""


def test_a_sweep_over_seeds_alone_chooses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [part for setting in FAST for part in ("--set", setting)]
    with pytest.raises(SystemExit):
        main(["sweep", "quickstart", "--over", "seed=0,1", *settings, "--device", "cpu", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "all seeds" in said and "best:" not in said and "chosen by" not in said


@pytest.mark.parametrize("validation", ["0", "0.2"])
def test_a_choice_says_whether_the_test_examples_made_it(
    validation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [part for setting in [*FAST, f"data.validation={validation}"] for part in ("--set", setting)]
    with pytest.raises(SystemExit):
        main(["sweep", "quickstart", "--over", "method.lr=0.1,0.2", *settings, "--out", str(tmp_path)])
    assert ("chosen by the test examples" in capsys.readouterr().out) == (validation == "0")
    table = json.loads((tmp_path / "sweep.json").read_text())
    assert [row["validated"] for row in table["runs"]] == [validation != "0"] * 2
    assert ("0.2 of the training examples" in (tmp_path / "report.html").read_text()) == (validation != "0")


def test_a_sweep_of_changed_code_is_refused_before_the_first_run(tmp_path: Path) -> None:
    own, out = tmp_path / "mine.py", tmp_path / "out"
    edit(own, "from fedvote import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n")
    (point,) = sweep("quickstart", ["method.lr=0.02"], [*FAST, f"method={own}:Mine"], out, "cpu")
    save([point], out / "sweep.json")
    (row,) = json.loads((out / "sweep.json").read_text())["runs"]
    assert row["files"] == {str(own): digest(own)}
    edit(own, own.read_text() + "    formula = 'another'\n")
    with pytest.raises(ConfigError, match=rf"{out}/method.lr=0.02 holds a run that was not made by {own} as it is now"):
        next(sweep("quickstart", ["method.lr=0.01,0.02"], [*FAST, f"method={own}:Mine"], out, "cpu"))
    assert not (out / "method.lr=0.01").exists()
