"""The status of a run is read from its folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fedvote import ConfigError
from fedvote.engines.flower.status import clients, headline, run_folder, seconds_since_last_round

RECORDS = [
    {"round": 1, "clients": [0, 1, 2], "counted": [0, 1, 2], "uplink_bytes": 400_000, "downlink_bytes": 100_000},
    {"round": 2, "clients": [0, 1, 2], "counted": [0], "refused": {"1": "no ballot"}, "absent": [2], "accuracy": 0.5},
    {"round": 3, "clients": [0, 1, 2], "counted": [0, 2], "failed": {"1": "its process died"}, "accuracy": 0.75,
     "left_out": {"2": "the ballot looks forged, copied or coordinated"}},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    (tmp_path / "roster.json").write_text(json.dumps({"key:aa north": 0, "key:bb south": 1}))
    os.utime(tmp_path / "metrics.jsonl", (1000, 1000))
    return tmp_path


def test_every_client_has_its_last_vote_and_its_failures(folder: Path) -> None:
    north, south, nameless = clients(folder)
    assert north == {
        "client": 0, "name": "key:aa north", "last_vote": 3, "votes": 3, "left_out": 0, "refused": 0, "failed": 0,
        "absent": 0,
    }  # fmt: skip
    assert (south["last_vote"], south["refused"], south["failed"]) == (1, 1, 1)
    assert nameless["name"] == "" and nameless["last_vote"] == 3 and nameless["absent"] == 1
    assert (north["left_out"], nameless["left_out"]) == (0, 1)


def test_one_sentence_says_how_the_run_stands(folder: Path) -> None:
    said = "closed 30 s ago with 2 of 3 ballots, 1 of them left out by the rule, accuracy 75.0%"
    assert headline(folder, now=1030) == f"round 3, {said}; frames so far: up 0.400 MB, down 0.100 MB"
    (folder / "config.toml").write_text("rounds = 5\n")
    assert headline(folder, now=1030) == f"round 3 of 5, {said}; frames so far: up 0.400 MB, down 0.100 MB"
    assert seconds_since_last_round(folder, now=1030) == 30


def test_clients_of_the_simulator_voted_unless_they_were_refused(tmp_path: Path) -> None:
    records = [{"round": 1, "clients": [0, 1]}, {"round": 2, "clients": [0, 1], "refused": {"1": "not a vote"}}]
    sizes = {"uplink_bytes": 1, "downlink_bytes": 1}
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record | sizes) + "\n" for record in records))
    assert [(row["last_vote"], row["votes"], row["refused"]) for row in clients(tmp_path)] == [(2, 2, 0), (1, 1, 1)]
    assert "with 1 of 2 ballots" in headline(tmp_path)


def test_the_folder_of_deploy_local_stands_for_the_run_in_it(tmp_path: Path) -> None:
    assert run_folder(tmp_path) == tmp_path
    (tmp_path / "federation").mkdir()
    assert run_folder(tmp_path) == tmp_path / "run"


def test_a_folder_without_rounds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no finished round"):
        headline(tmp_path)
