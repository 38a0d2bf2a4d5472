"""Every line of every figure and every cell of every table can be run and shown: with the digits, for one round."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path

import pytest
import torch

from fedvote.cli import main
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.engines.simulate import Simulation
from fedvote.runs.config import Config
from fedvote.runs.environment import environment
from fedvote.runs.experiment import federation
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.cells import Cell, Record, Runs
from fedvote.studies.experiments.comparison import Compared, Comparison, configured

COMPARISONS = {name: each for name, each in EXPERIMENTS.items() if isinstance(each, Comparison)}
SMALL = ("data.name=digits", "model.name=digits-cnn", "local.batch=4", "local.steps=1", "engine.calibrate_on=20")
DONE: dict[str, Record] = {}  # experiments share runs


@cache
def digits() -> Dataset:
    """Few of them, as if by writers."""
    data = load("digits")
    writers = torch.arange(len(data.train)) % 310
    return dataclasses.replace(data, test=data.test.rows(slice(100)), writers=writers)


def first_round(config: Config) -> Record:
    if (known := repr(config)) not in DONE:
        *_, snapshot = Simulation(federation(config, "cpu", digits())).run()
        DONE[known] = snapshot.record
    return DONE[known]


def every_rule_and_attack(cells: tuple[Cell, ...]) -> list[Cell]:
    """One cell of each row, and so of each column: all would take a minute."""
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*((c.row, c.column) for c in cells), strict=True))
    return [cell for cell in cells if (rows.index(cell.row) - columns.index(cell.column)) % len(columns) == 0]


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_cell_runs_and_is_shown(name: str) -> None:
    comparison = COMPARISONS[name]
    cells = every_rule_and_attack(comparison.cells) if name == "hostile-digits" else comparison.cells
    assert {(c.row, "") for c in cells} | {("", c.column) for c in cells} == (
        {(c.row, "") for c in comparison.cells} | {("", c.column) for c in comparison.cells}
    )
    smaller = ("partition.min_samples=1",) if name == "figure-4a" else ()
    asked = Asked(seeds=1, rounds=1, settings=(*SMALL, *smaller), device="cpu")
    configs = {cell: configured(cell, 0, asked) for cell in cells}
    runs = [Runs(cell, config, {0: [first_round(config)]}) for cell, config in configs.items()]
    for run in runs:
        (record,) = run.by_seed[0]
        assert 0 <= record["accuracy"] <= 1 and record["uplink_bytes"] > 0, run.cell
    shown = Compared(comparison, asked, runs, environment(torch.device("cpu")))
    text = shown.text()
    assert all(cell.row in text and cell.column in text for cell in cells)
    assert "<table" in shown.page().html() and json.dumps(shown.numbers())


@pytest.mark.slow
def test_all_experiments_are_reproduced_on_small_data(tmp_path: Path) -> None:
    settings = [word for setting in (*SMALL, "partition=dirichlet") for word in ("--set", setting)]
    with pytest.raises(SystemExit) as stop:
        main(
            ["reproduce", "all", "--seeds", "1", "--rounds", "2", "--device", "cpu", "--out", str(tmp_path), *settings]
        )
    assert stop.value.code == 0
    for name, experiment in EXPERIMENTS.items():
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert (tmp_path / f"{name}.html").is_file()
        if isinstance(experiment, Comparison):
            assert len(found["cells"]) == len(experiment.cells)
            assert all(len(cell["seeds"]["0"]) == 2 for cell in found["cells"])
