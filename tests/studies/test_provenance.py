"""Every file of numbers says what made it: command, configuration, seeds, commit, versions, device and threads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedvote import __version__
from fedvote.cli import main
from fedvote.runs.environment import ENVIRONMENT, commit
from fedvote.studies.bench import judge

SMALL = ("data.name=digits", "model.name=digits-cnn", "federation.clients=3", "local.batch=8", "local.steps=1")

RESULTS = Path(__file__).parents[2] / "results"
OLDER = {
    "byzantine.json", "cifar10-silo-ternary.json", "fast-paths.json", "flower-bytes.json",
    "methods-cifar10-silo.json", "overheads-cifar10-silo.json",
    "paper/table-1-rates.json", "paper/table-2-rates.json", "peers.json",
}  # fmt: skip
"""Result files that do not say all of it. A new measurement takes its file off this list; no file comes onto it."""


def test_every_result_file_says_what_made_it_or_is_known_not_to() -> None:
    files = {str(file.relative_to(RESULTS)): json.loads(file.read_text()) for file in RESULTS.rglob("*.json")}
    assert {name for name, found in files.items() if lacking(found)} == OLDER


def lacking(found: dict[str, Any]) -> list[str]:
    """What a result file does not say. Files of single runs say it of each run."""
    runs = found.get("runs")
    if "command" not in found and isinstance(runs, dict) and all("command" in run for run in runs.values()):
        return [name for run in runs.values() for name in lacking(run)]
    command, environment, keys = found.get("command", ""), found.get("environment", {}), set(keys_in(found))
    said = {
        "command": bool(command),
        "configuration": bool(keys & {"config", "asked"}) or "--set" in command,
        "seeds": "seeds" in keys or "--set seed=" in command,
        **{name: name in environment for name in ENVIRONMENT},
    }
    return [name for name, there in said.items() if not there]


def keys_in(value: Any) -> Iterator[str]:
    """The keys of all dicts in a value."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_in(each)


ABSENT = {
    "429d0f9de819cf10eb9e2531ada44e37b3dab7a0",
    "a6a8da651a6a5c3692e652be4a2314e07a4c9318",
    "aaa82a9aba26b1d3bf4691334fedbe4230f56ffc",
    "bfe28f5d31054615a65f1fbdf7e4cbcf4eee3bda",
}
"""Commits of results that this repository does not have: results/README.md says which code they are near to."""


def test_every_commit_that_a_result_file_names_is_in_the_history_or_known_to_be_absent() -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=RESULTS, capture_output=True, text=True, check=True).stdout

    if not (RESULTS.parent / ".git").exists() or git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("this is not a clone with its whole history")
    history = set(git("rev-list", "HEAD").split())
    named = {each for file in RESULTS.rglob("*.json") for each in commits_in(json.loads(file.read_text()))}
    assert {each for each in named if each not in history} == ABSENT


def commits_in(value: Any) -> Iterator[str]:
    """The commits that made a result, or parts of it."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from commits_in(each)
    if isinstance(value, dict) and isinstance(commit := value.get("commit"), str):
        yield from re.findall("[0-9a-f]{40}", commit)


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
    assert found["config"] == found["asked"]


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
