"""Every part of every experiment can be run and shown: on the digits, for one round.

The quick tests run a cell for every setting. `make test-paper` runs every cell, by the command.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
import torch

from fedvote.cli import main
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.engines.simulate import Simulation
from fedvote.runs.environment import environment
from fedvote.runs.experiment import federation
from fedvote.studies.experiments import EXPERIMENTS, Asked, comparison, searched
from fedvote.studies.experiments.cells import Cell, Record, Runs
from fedvote.studies.experiments.comparison import KEPT, Compared, Comparison, configured
from fedvote.studies.experiments.contract import ignored_by
from fedvote.studies.experiments.searched import Searched

COMPARISONS = {name: each for name, each in EXPERIMENTS.items() if isinstance(each, Comparison)}
SMALL = ("data.name=digits", "model.name=digits-cnn", "local.batch=4", "local.steps=1", "engine.calibrate_on=20")


@cache
def digits() -> Dataset:
    """Few of them, as if by writers."""
    data = load("digits")
    writers = torch.arange(len(data.train)) % 310
    return dataclasses.replace(data, test=data.test.rows(slice(100)), writers=writers)


def with_every_setting(cells: Iterable[Cell], known: set[str]) -> list[Cell]:
    """Cells that have all settings of these cells between them, without those that have only known settings."""
    kept = []
    for cell in sorted(cells, key=lambda cell: -len(cell.settings)):
        if not {cell.preset, *cell.settings} <= known:
            known |= {cell.preset, *cell.settings}
            kept.append(cell)
    return kept


KNOWN: set[str] = set()
CHOSEN = {name: with_every_setting(each.cells, KNOWN) for name, each in COMPARISONS.items()}


def asked_of(cell: Cell) -> Asked:
    smaller = ("partition.min_samples=1",) if cell.preset.startswith("femnist") else ()
    return Asked(seeds=1, rounds=1, settings=(*SMALL, *smaller), device="cpu")


def first_round(cell: Cell) -> Record:
    *_, snapshot = Simulation(federation(configured(cell, 0, asked_of(cell)), "cpu", digits())).run()
    return snapshot.record


@pytest.mark.parametrize("name", [name for name in COMPARISONS if CHOSEN[name]])
def test_a_cell_with_every_setting_runs(name: str) -> None:
    for cell in CHOSEN[name]:
        record = first_round(cell)
        assert 0 <= record["accuracy"] <= 1 and record["uplink_bytes"] > 0, cell


@pytest.mark.parametrize("name", COMPARISONS)
def test_cells_are_shown(name: str) -> None:
    cells = with_every_setting(COMPARISONS[name].cells, set())
    record = {**dict.fromkeys(KEPT, 0.5), "uplink_bytes": 4096, "downlink_bytes": 8192, "round": 1}
    runs = [Runs(cell, configured(cell, 0, asked_of(cell)), {0: [record]}) for cell in cells]
    shown = Compared(COMPARISONS[name], asked_of(cells[0]), runs, environment(torch.device("cpu")))
    text = shown.text()
    assert all(cell.row in text and cell.column in text for cell in cells)
    assert "<table" in shown.page().html()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_is_reproduced(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (comparison, searched):  # rows that are named after a network run with the small one, too
        monkeypatch.setattr(module, "check_names_kept", lambda *_: None)
    cells = COMPARISONS[name].cells if name in COMPARISONS else ()
    by_writer = any(cell.preset.startswith("femnist") for cell in cells)  # digits do not name theirs
    settings = [word for each in (*SMALL, *["partition=dirichlet"] * by_writer) for word in ("--set", each)]
    changes = {"rounds": ["--rounds", "2"], "settings": settings}
    words = [word for field, each in changes.items() if field not in ignored_by(EXPERIMENTS[name]) for word in each]
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, "--seeds", "1", "--device", "cpu", "--out", str(tmp_path), *words])
    assert stop.value.code == 0 and (tmp_path / f"{name}.html").is_file()
    found = json.loads((tmp_path / f"{name}.json").read_text())
    experiment = EXPERIMENTS[name]
    cells = experiment.compare(found["chosen"]).cells if isinstance(experiment, Searched) else cells
    rounds = [len(records) for cell in found.get("cells", []) for records in cell["seeds"].values()]
    assert rounds == [2] * len(cells)  # one seed of each
