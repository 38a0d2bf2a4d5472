"""`fedvote run`: what it leaves behind, and that a run can be repeated, resumed and made longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot, save_snapshot
from fedvote.runs.folder import RunFolder
from fedvote.runs.metrics_file import append_record
from tests.cli.command import SMALL, Command, contents
from tests.toy import assert_same


def test_a_run_leaves_a_folder_and_says_how_it_ended(fedvote: Command, tmp_path: Path) -> None:
    outcome = fedvote("run", "quickstart", *SMALL, "--seed", "3", "--out", "here")
    assert outcome.code == 0
    assert "deployed network" in outcome.out and "here/report.html" in outcome.out
    assert [line[:9] for line in outcome.err.splitlines()] == ["round 1/2", "round 2/2"]
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files >= {
        "config.toml", "metrics.jsonl", "clients.json", "environment.json", "checkpoint.safetensors", "report.html",
    }  # fmt: skip
    assert "seed = 3" in (tmp_path / "here" / "config.toml").read_text()
    records = [json.loads(line) for line in (tmp_path / "here" / "metrics.jsonl").read_text().splitlines()]
    assert [record["round"] for record in records] == [1, 2]
    assert records[0].keys() >= {
        "accuracy", "accuracy_float", "loss", "uplink_bytes", "downlink_bytes", "uplink_bits_per_weight", "seconds",
        "clients",
    }  # fmt: skip


def test_under_a_rule_a_run_says_at_its_end_who_was_left_out(fedvote: Command, tmp_path: Path) -> None:
    ballots = ["--set", "method.reputation=camps", "--set", "federation.clients=7", "--set", "local.steps=5"]
    forged = [*ballots, "--set", "attack=inverse", "--set", "federation.hostile=2"]
    ended = fedvote("run", *SMALL, *forged, "--out", "forged")
    records = [json.loads(line) for line in (tmp_path / "forged" / "metrics.jsonl").read_text().splitlines()]
    first, last = (", ".join(record["left_out"]) for record in records)
    assert f"left out by the rule in the last round: clients {last}\n" in ended.out
    assert f"left out by the rule: clients {first}; " in ended.err
    honest = fedvote("run", *SMALL, *ballots, "--out", "honest")
    assert "\nleft out by the rule in the last round: nobody\n" in honest.out
    assert "left out" not in fedvote("run", *SMALL, "--out", "plain").out


def test_the_written_configuration_runs_again_to_the_same_bits(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--set", "method.reputation=proportional").code == 0
    first = tmp_path / "runs" / "quickstart"
    assert fedvote("run", str(first / "config.toml"), "--device", "cpu", "--out", "again").code == 0
    assert (first / "config.toml").read_bytes() == (tmp_path / "again" / "config.toml").read_bytes()
    a, b = (load_snapshot(folder / "checkpoint.safetensors") for folder in (first, tmp_path / "again"))
    assert_same(a.state, b.state)


@pytest.mark.parametrize(("checkpoints", "start"), [((1, 2), ""), ((1,), " after round 1, its last checkpoint,")])
def test_a_stopped_run_says_from_which_round_it_resumes(
    checkpoints: tuple[int, ...], start: str, fedvote: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(folder: RunFolder, snapshot: Snapshot) -> None:
        if snapshot.round == 3:
            raise KeyboardInterrupt
        append_record(folder.metrics_file, snapshot.record)

    def save(folder: RunFolder, snapshot: Snapshot) -> None:
        if snapshot.round in checkpoints:
            save_snapshot(folder.checkpoint_file, snapshot)

    with monkeypatch.context() as stopped:
        stopped.setattr(RunFolder, "add", add)
        stopped.setattr(RunFolder, "save", save)
        outcome = fedvote("run", *SMALL, "--set", "rounds=4", "--out", "run")
    said = f"stopped after round 2 of 4; resume{start} with: fedvote run --resume --out run"
    assert (outcome.code, outcome.err.splitlines()[-1]) == (130, said)
    resumed = fedvote("run", "--resume", "--out", "run", "--device", "cpu")
    assert resumed.err.startswith(f"round {checkpoints[-1] + 1}/4")


def test_a_finished_run_is_resumed_without_harm(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    before = contents(tmp_path)
    outcome = fedvote("run", "--resume", "--out", "run", "--device", "cpu")
    assert outcome.code == 0 and outcome.err == "" and "deployed network" in outcome.out
    assert contents(tmp_path) == before


def test_a_run_without_its_checkpoint_is_not_started_over_in_silence(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    before = contents(tmp_path)
    outcome = fedvote("run", "--resume", "--out", "run", "--device", "cpu")
    assert outcome.code == 2 and "records of 2 rounds, but no checkpoint.safetensors to resume from" in outcome.err
    assert contents(tmp_path) == before


def test_a_run_made_longer_is_a_longer_run(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "grown").code == 0
    assert fedvote("run", "--resume", "--out", "grown", "--set", "rounds=4", "--device", "cpu").code == 0
    assert fedvote("run", *SMALL, "--set", "rounds=4", "--out", "whole").code == 0
    grown, whole = (load_snapshot(tmp_path / name / "checkpoint.safetensors") for name in ("grown", "whole"))
    assert grown.round == whole.round == 4
    assert_same(grown.state, whole.state)
    assert (tmp_path / "grown" / "config.toml").read_bytes() == (tmp_path / "whole" / "config.toml").read_bytes()
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("grown", "whole")]
    a, b = ([{k: v for k, v in json.loads(x).items() if "seconds" not in k} for x in part] for part in lines)
    assert a == b


def test_a_run_with_privacy_ends_with_its_epsilon(fedvote: Command) -> None:
    pytest.importorskip("dp_accounting")
    private = ["--set", "secure.name=tally", "--set", "secure.count_only=true"]
    ended = fedvote("run", *SMALL, *private, "--set", "method.privacy=randomised-response", "--out", "private")
    assert "\nprivacy of each client, over all rounds: epsilon " in ended.out and "next to nothing" in ended.out
    assert "privacy" not in fedvote("run", *SMALL, "--out", "plain").out


def test_what_is_probably_not_meant_is_said(fedvote: Command) -> None:
    alone = fedvote("run", *SMALL, "--set", "attack=inverse", "--out", "a")
    assert alone.code == 0 and "attack is inverse, but hostile is 0: nobody attacks" in alone.err
    tame = fedvote("run", *SMALL, "--set", "federation.hostile=1", "--out", "b")
    assert tame.code == 0 and "hostile is 1, but there is no attack" in tame.err
    both = fedvote("run", *SMALL, "--set", "federation.hostile=1", "--set", "attack=inverse", "--out", "c")
    assert both.code == 0 and "fedvote:" not in both.err


def test_a_mistake_that_shows_in_round_1_can_be_mended_in_the_same_folder(fedvote: Command) -> None:
    krum = [*SMALL, "--out", "run", "--set", "method=fedavg", "--set", "method.aggregate=krum"]
    wrong = fedvote("run", *krum, "--set", "method.aggregate.byzantine=10")
    assert wrong.code == 2 and "Krum with byzantine = 10 needs" in wrong.err
    assert fedvote("run", *krum, "--set", "method.aggregate.byzantine=0").code == 0


NOBODY = """
import torch
from fedvote.reputation import Reputation, Verdict

class Nobody(Reputation):
    def judge(self, memory, ballots, key):
        nobody = torch.zeros(3)
        return Verdict(nobody, nobody, memory)
"""


def test_a_run_whose_rule_leaves_out_everybody_ends_as_one_in_which_nobody_counts(
    fedvote: Command, tmp_path: Path
) -> None:
    (tmp_path / "rule.py").write_text(NOBODY)
    outcome = fedvote("run", *SMALL, "--out", "run", "--set", "method.reputation=rule.py:Nobody")
    assert outcome.code == 1
    said = "in 2 of 2 rounds no message counted; in the last, the rule left out all: Nobody gave the ballot no weight"
    assert outcome.err.splitlines()[-1] == f"fedvote: {said}"


def test_a_run_in_which_nobody_counts_says_so_and_goes_on(fedvote: Command) -> None:
    outcome = fedvote("run", *SMALL, "--out", "run", "--set", "method=fedavg", "--set", "method.lr=1e30")
    assert outcome.code == 1 and outcome.err.count("3 not counted, client 0: ") == 2
    assert "in 2 of 2 rounds no message counted; in the last, client 0: " in outcome.err.splitlines()[-1]
