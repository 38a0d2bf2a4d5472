"""Every file of numbers says what made it: command, configuration, seeds, commit, versions, device and threads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fedvote import __version__
from fedvote.cli import main
from fedvote.runs.environment import commit
from fedvote.studies.bench import judge

SMALL = ("data.name=digits", "model.name=digits-cnn", "federation.clients=3", "local.batch=8", "local.steps=1")


def made(monkeypatch: pytest.MonkeyPatch, file: Path, *words: str) -> dict[str, Any]:
    """The file that a command writes, after a look at what all of them must have."""
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/fedvote", *words])
    monkeypatch.setenv("FEDVOTE_COMMIT", "abc1234")
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    found: dict[str, Any] = json.loads(file.read_text())
    assert found["command"].split()[:2] == ["fedvote", words[0]] and found["command"].count(" ") >= len(words)
    assert found["environment"].keys() == {"fedvote", "commit", "python", "torch", "device", "threads"}
    assert (found["environment"]["commit"], found["environment"]["fedvote"]) == (commit(), __version__)
    assert found["environment"]["commit"] == "abc1234" and found["packages"]["numpy"]
    return found


def test_an_experiment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sets = [word for setting in SMALL for word in ("--set", setting)]
    rest = ("--rounds", "1", "--seeds", "2", "--only", "FedAvg", "--device", "cpu", "--out", str(tmp_path))
    found = made(monkeypatch, tmp_path / "figure-4b.json", "reproduce", "figure-4b", *sets, *rest)
    assert found["seeds"] == [0, 1] and found["asked"]["settings"] == list(SMALL)
    (cell,) = found["cells"]
    assert cell["seeds"].keys() == {"0", "1"} and cell["config"]["method"]["name"] == "fedavg"


def test_figure_3_and_table_3_which_run_no_federation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sets = [word for setting in SMALL for word in ("--set", setting)]
    found = made(monkeypatch, tmp_path / "figure-3.json", "reproduce", "figure-3", *sets, "--out", str(tmp_path))
    assert found["seeds"] == [0] and found["config"]["data"]["name"] == "digits"
    found = made(monkeypatch, tmp_path / "table-3.json", "reproduce", "table-3", "--out", str(tmp_path))
    assert found["seeds"] == [] and found["config"]["inputs"] == 100  # it only counts


def test_a_benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measure, file = judge.bench, tmp_path / "judge.json"
    monkeypatch.setattr(judge, "bench", lambda only, clients, device: measure(only, clients, device, weights=64))
    options = ("--only", "cut", "--clients", "3", "--device", "cpu", "--json", str(file))
    found = made(monkeypatch, file, "bench", "judge", *options)
    assert found["benchmark"] == "judge" and found["seeds"] == [0]
    assert found["asked"] == {"only": ["cut"], "clients": [3], "device": "cpu"} and len(found["rows"]) == 1


def test_a_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    over = ("--over", "method=fedavg,fedvote", "--over", "seed=3,5")
    sets = [word for setting in (*SMALL[2:], "rounds=1") for word in ("--set", setting)]
    found = made(
        monkeypatch, tmp_path / "sweep.json", "sweep", "quickstart", *over, *sets, "--device", "cpu",
        "--out", str(tmp_path)
    )  # fmt: skip
    assert found["seeds"] == [3, 5]
    names = [(run["config"]["method"]["name"], run["config"]["seed"]) for run in found["runs"]]
    assert names == [("fedavg", 3), ("fedavg", 5), ("fedvote", 3), ("fedvote", 5)]
