"""Runs by a user's own code are kept apart from runs by the same file after a change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Compared, Comparison
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.earlier_runs import unpack
from fedvote.studies.experiments.views import by_round
from tests.own_code import edit

CODE = "from fedvote import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n"
CHANGED = f"{CODE}    formula = 'another'\n"
SMALL = ("federation.clients=2", "local.steps=1", "local.batch=4")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    edit(file := tmp_path / "mine.py", CODE)
    return file


ASKED = Asked(seeds=1, rounds=1, device="cpu")


def compare(own: Path, runs: Path, asked: Asked = ASKED) -> Compared:
    cells = [Cell(name, "quickstart", (*SMALL, f"method={method}")) for name, method in
             (("mine", f"{own}:Mine"), ("FedAvg", "fedavg"))]  # fmt: skip
    *_, found = Comparison("Mine and FedAvg", tuple(cells), by_round).measure(asked, runs)
    return found


def records(runs: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in runs.rglob("metrics.jsonl")}


@pytest.mark.parametrize("more", [{}, {"rounds": 2}, {"seeds": 2}, {"jobs": 2}, {"only": ("FedAvg",)}])
def test_a_run_of_other_code_is_neither_kept_nor_continued_nor_shown(
    more: dict[str, Any], own: Path, tmp_path: Path
) -> None:
    compare(own, tmp_path / "runs")
    done = records(tmp_path / "runs")
    edit(own, CHANGED)
    with pytest.raises(ConfigError, match=rf"{tmp_path}/runs/.*seed=0 holds a run that was not made by {own} as it is"):
        compare(own, tmp_path / "runs", replace(ASKED, **more))
    assert records(tmp_path / "runs") == done
    edit(own, CODE)
    assert {len(each.by_seed[0]) for each in compare(own, tmp_path / "runs", replace(ASKED, rounds=2)).runs} == {2}


def test_code_that_changes_while_it_runs_is_recorded_as_it_ran(own: Path, tmp_path: Path) -> None:
    compare(own, tmp_path / "first")
    own.write_text(CHANGED)  # this process still runs the code that it has read
    compare(own, tmp_path / "second")
    edit(own, CHANGED)
    with pytest.raises(ConfigError, match=r"second/.* was not made by"):
        compare(own, tmp_path / "second")


def test_runs_of_a_results_file_are_taken_only_with_the_code_that_made_them(own: Path, tmp_path: Path) -> None:
    file, here = tmp_path / "there.json", tmp_path / "here"
    found = compare(own, tmp_path / "there").numbers()
    file.write_text(json.dumps(found))
    unpack(file, tmp_path / "same")
    done = records(tmp_path / "same")
    compare(own, tmp_path / "same")
    assert len(done) == 2 and records(tmp_path / "same") == done
    edit(own, CHANGED)
    with pytest.raises(ConfigError, match=rf"--earlier .*there\.json has a run that was not made by {own} as it is"):
        unpack(file, here)
    edit(own, CODE)
    file.write_text(json.dumps(found | {"cells": [cell | {"environments": {}} for cell in found["cells"]]}))
    with pytest.raises(ConfigError, match="was not made by"):  # nothing says which code it was
        unpack(file, here)
    assert not here.exists()
