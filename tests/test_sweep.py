"""A sweep runs every combination once, goes on where it was, and names the best."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedvote.cli import main
from fedvote.core import ConfigError
from fedvote.sweep import GRIDS, points, sweep

FAST = ["rounds=1", "local.steps=2", "federation.clients=3"]


def test_points_are_all_combinations_in_order() -> None:
    assert points(["a=1,2", "b.c=x"]) == [("a=1", "b.c=x"), ("a=2", "b.c=x")]


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
    assert f"best: {table['best'][0]}" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
