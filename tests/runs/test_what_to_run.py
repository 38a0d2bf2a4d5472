"""What to run and where, how often it is saved, and data of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedvote.errors import ConfigError, DataError
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs import experiment
from fedvote.runs.config import read
from fedvote.runs.experiment import configure
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from tests.runs.run_folders import SMALL, filled, snapshot
from tests.toy import dataset


def test_the_folder_goes_by_the_name_of_what_is_run(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("rounds = 2")
    assert configure(None, [], None, False)[1].path == Path("runs/quickstart")
    assert configure("one-shot", [], None, False)[1].path == Path("runs/one-shot")
    assert configure(str(tmp_path / "mine.toml"), [], None, False)[1].path == Path("runs/mine")
    assert configure("one-shot", [], tmp_path / "here", False)[1].path == tmp_path / "here"


def test_resuming_by_the_folder_alone_takes_its_configuration(tmp_path: Path) -> None:
    filled(tmp_path / "run", 1)
    config, folder = configure(None, ["rounds=8"], tmp_path / "run", True)
    assert config == replace(SMALL, rounds=8) and folder.path == tmp_path / "run"


def test_resuming_by_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no run to resume"):
        configure(None, [], tmp_path / "typo", True)
    assert configure("one-shot", [], tmp_path / "new", True) == (read("one-shot"), RunFolder(tmp_path / "new"))


@pytest.mark.parametrize(("cost", "share"), [(0.01, 0.1), (5.0, 0.1), (5.0, 1.0)])
def test_checkpoints_take_their_share_of_the_time_at_most_and_the_last_round_has_one(
    cost: float, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, saved, folder = [0.0], [], filled(tmp_path / "run", 0)

    def rounds() -> Iterator[Snapshot]:
        for round in range(1, 101):
            clock[0] += 1.0
            yield snapshot(round)

    def save(_: RunFolder, made: Snapshot) -> None:
        clock[0] += cost
        saved.append(made.round)

    monkeypatch.setattr("fedvote.runs.experiment.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(RunFolder, "save", save)
    for name in ("save_network", "write_evaluation"):
        monkeypatch.setattr(experiment, name, lambda *_: None)
    made: Any = SimpleNamespace(plan=SimpleNamespace(rounds=100), data=dataset())
    assert [s.round for s in experiment.record(made, folder, None, rounds(), share)] == list(range(1, 101))
    assert len(folder.metrics()) == 100
    seldom = cost * (1 / share - 1) > 1
    assert saved == list(range(1, 101)) if not seldom else saved[0] == 1 and saved[-1] == 100 and 2 < len(saved) < 5


OWN_DATA = """
import numpy as np
import fedvote

def points():
    rng = np.random.default_rng(0)
    x = rng.random((60, 1, 8, 8), dtype=np.float32)
    return fedvote.from_arrays(x, np.arange(60) % 3, x[:30], np.arange(30) % 3)

def numbers():
    return [1, 2, 3]
"""


def test_data_of_ones_own_are_named_by_a_file_and_a_function(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_DATA)
    config = read("quickstart", [f"data={file}:points", "rounds=1", "local.batch=4", "partition=iid"])
    list(run(config, RunFolder(tmp_path / "run"), device="cpu"))
    assert read(str(tmp_path / "run" / "config.toml")).data.name == f"{file}:points"
    with pytest.raises(DataError, match=r"numbers returned a list, expected a dataset made by fedvote\.from_arrays"):
        experiment.dataset(f"{file}:numbers")
    with pytest.raises(ConfigError, match="there is no dataset 'mnist'"):
        experiment.dataset("mnist")
