"""The results file of one machine is enough for another to go on: its runs are not repeated, and keep their numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedvote.cli import main
from fedvote.errors import ConfigError
from fedvote.studies.experiments import Asked
from fedvote.studies.experiments.earlier_runs import unpack
from fedvote.studies.experiments.reproduce import RUNS, reproduce

ASKED = Asked(
    seeds=1,
    rounds=2,
    settings=("local.steps=1",),
    only=("layer, 3 of 7", "camps", "uniform"),
    device="cpu",
)


def numbers(out: Path) -> dict[str, object]:
    found = json.loads((out / "few-digits.json").read_text())
    return {name: found[name] for name in ("cells", "table")}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder of the other machine, on which another commit ran."""
    out = tmp_path / "there"
    list(reproduce("few-digits", ASKED, out))
    for file in (out / RUNS).glob("*/environment.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"commit": "another"}))
    *_, _ = reproduce("few-digits", ASKED, out)
    return out


def test_runs_of_a_results_file_count_as_finished_and_keep_every_number(there: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    unpack(there / "few-digits.json", here / RUNS)
    before = {file: file.read_bytes() for file in (here / RUNS).rglob("*") if file.is_file()}
    *_, _ = reproduce("few-digits", ASKED, here)
    assert {file: file.read_bytes() for file in (here / RUNS).rglob("*") if file.is_file()} == before
    assert numbers(here) == numbers(there)
    cells = json.loads((here / "few-digits.json").read_text())["cells"]
    assert cells and all(cell["environments"]["1"]["commit"] == "another" for cell in cells)
    assert all("hostile_weight" in record for record in cells[0]["seeds"]["1"])


def test_runs_with_fewer_rounds_than_asked_for_are_repeated_from_the_first(there: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    unpack(there / "few-digits.json", here / RUNS)
    (file, *_) = (here / RUNS).glob("*/metrics.jsonl")
    file.write_text(file.read_text().replace('"round"', '"marked": 1, "round"'))
    *_, _ = reproduce("few-digits", replace(ASKED, rounds=3), here)
    assert len(file.read_text().splitlines()) == 3 and "marked" not in file.read_text()


def test_runs_that_are_there_already_stay(there: Path) -> None:
    (first, *_) = (there / RUNS).glob("*/metrics.jsonl")
    first.write_text(first.read_text().splitlines()[0] + "\n")  # a run that was stopped
    unpack(there / "few-digits.json", there / RUNS)
    assert len(first.read_text().splitlines()) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"cells": [{}], "environment": {}}', '{"rows": []}'])
def test_a_file_that_has_no_runs_is_one_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"--earlier .*x\.json cannot be read as results of runs"):
        unpack(file, tmp_path / "runs")
    with pytest.raises(SystemExit):
        main(["reproduce", "digits", "--earlier", str(tmp_path / "missing.json"), "--out", str(tmp_path / "out")])
    assert "expected a JSON file that" in " ".join(capsys.readouterr().err.split())
