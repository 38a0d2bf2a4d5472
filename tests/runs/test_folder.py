"""The run folder: claimed by one run only, never damaged, and mended where a killed run left it half written."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fedvote import FedAvg, FedVote
from fedvote.errors import ConfigError, DataError
from fedvote.federation import Snapshot
from fedvote.plan import Clients, LocalTraining
from fedvote.reputation import Proportional
from fedvote.runs import experiment
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import Config, read
from fedvote.runs.experiment import configure
from fedvote.runs.folder import NETWORK, RunFolder, differences
from fedvote.runs.run import run
from fedvote.runs.toml_tables import as_table, build
from tests.toy import assert_same

SMALL = Config(
    rounds=2,
    federation=Clients(clients=3, cohort=2),
    method=FedVote(reputation=Proportional()),
    local=LocalTraining(steps=1, batch=8),
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def snapshot(round: int) -> Snapshot:
    return Snapshot(round, {"level": torch.tensor([round, 2])}, {}, {"round": round, "accuracy": round / 10})


def filled(path: Path, rounds: int, config: Config = SMALL) -> RunFolder:
    """A folder with a run of so many rounds in it."""
    folder = RunFolder(path)
    assert folder.claim(config, resume=False) is None
    for round in range(1, rounds + 1):
        folder.add(snapshot(round))
        folder.save(snapshot(round))
    folder.release()
    return folder


def refuse(sentence: str, folder: RunFolder, config: Config = SMALL, resume: bool = True) -> None:
    """The claim is refused, and the folder stays as it is."""
    before = contents(folder.path) if folder.path.is_dir() else None
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refusal:
        folder.claim(config, resume)
    assert "\n" not in str(refusal.value)
    assert before == (contents(folder.path) if folder.path.is_dir() else None)


def timeless(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in record.items() if not k.startswith("seconds")} for record in records]


# Claims


@pytest.mark.parametrize("there", ["nothing", "an empty folder"])
def test_a_new_run_writes_its_complete_configuration(there: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    if there == "an empty folder":
        path.mkdir(parents=True)
    folder = filled(path, 0)
    assert build(Config, tomllib.loads((path / "config.toml").read_text())) == SMALL == folder.config()
    assert folder.metrics() == [] and folder.rounds_done() == 0


def test_a_folder_with_foreign_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("chapter 1")
    for resume in (False, True):
        refuse("is not empty and holds no run: choose another folder with --out", RunFolder(tmp_path), resume=resume)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        refuse("choose another folder with --out", RunFolder(path), resume=False)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_run_is_not_overwritten_unless_it_is_resumed(tmp_path: Path) -> None:
    refuse("already holds a run (1 of 2 rounds): go on with it by --resume", filled(tmp_path, 1), resume=False)


def test_another_run_is_not_resumed_and_the_difference_is_named(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    refuse("it differs in seed (0 there, 5 asked)", folder, replace(SMALL, seed=5))
    refuse("method.name ('fedvote' there, 'fedavg' asked)", folder, replace(SMALL, method=FedAvg()))


def test_the_same_run_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    before = contents(tmp_path)
    since = folder.claim(SMALL, resume=True)
    assert since is not None and since.round == 2 and since.state["level"].tolist() == [2, 2]
    assert contents(tmp_path) == before


def test_a_run_can_be_made_longer_but_not_shorter_than_it_is(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    refuse("has 2 rounds already, asked for 1", folder, replace(SMALL, rounds=1))
    assert folder.claim(replace(SMALL, rounds=9), resume=True) is not None
    config = folder.config()
    assert config is not None and config.rounds == 9


def test_what_failed_before_its_first_round_can_be_started_again_and_otherwise(tmp_path: Path) -> None:
    folder, other = filled(tmp_path, 0), replace(SMALL, method=FedAvg())
    assert folder.claim(other, resume=False) is None and folder.config() == other
    folder.release()
    assert folder.claim(SMALL, resume=True) is None and folder.config() == SMALL


def test_what_does_not_make_it_another_run_is_not_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"it differs in seed \(0 there, 5 asked\);"):
        filled(tmp_path, 1).claim(replace(SMALL, seed=5, rounds=9), resume=True)


def test_differences_name_the_keys() -> None:
    assert differences(SMALL, SMALL) == []
    other = replace(SMALL, method=FedVote(reputation=Proportional(beta=0.75)))
    assert differences(SMALL, other) == ["method.reputation.beta (0.5 there, 0.75 asked)"]


# What is damaged


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "another file"])
def test_a_damaged_checkpoint_is_refused_and_nothing_is_changed(damage: str, tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    file = folder.checkpoint_file
    whole = file.read_bytes()
    if damage == "another file":
        save_file({"x": torch.zeros(1)}, file)
    else:
        file.write_bytes({"cut": whole[:-1], "empty": b"", "noise": bytes(range(256)) * 4}[damage])
    refuse("checkpoint.safetensors is damaged", folder, replace(SMALL, rounds=3))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"seed = \n", "config.toml is not TOML"),
        (b"\xff", "config.toml is not TOML"),
        (b"seed = '1'\n", "seed is '1'"),
        (b"", "is empty"),
    ],
)
def test_a_damaged_configuration_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    folder.config_file.write_bytes(content)
    for resume in (False, True):
        refuse(sentence, folder, resume=resume)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"round": 2, "acc', "Line 2 of"),
        (b"[1, 2]", "Line 2 of"),
        (b'{"a": 1}', "Line 2 of"),
        (b"\xff\xfe", "Line 2 of"),
        (None, "has not all of the 3 rounds that checkpoint.safetensors follows"),
    ],
)
def test_a_run_whose_earlier_rounds_are_damaged_is_kept_as_it_is(
    line: bytes | None, sentence: str, tmp_path: Path
) -> None:
    folder = filled(tmp_path, 3)
    lines = folder.metrics_file.read_bytes().splitlines()
    lines[1:2] = [] if line is None else [line]
    folder.metrics_file.write_bytes(b"\n".join(lines) + b"\n")
    refuse(sentence, folder, replace(SMALL, rounds=4))


def test_a_disk_that_is_full_at_a_checkpoint_is_one_sentence_and_the_last_one_stays(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    before = contents(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(
            ConfigError, match=r"checkpoint\.safetensors cannot be written \(.*\): make room"
        ) as refusal:
            folder.save(Snapshot(2, {"level": torch.zeros(10_000)}, {}, {"round": 2}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(refusal.value) and contents(tmp_path) == before


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    folder.metrics_file.unlink()
    folder.metrics_file.mkdir()
    refuse("metrics.jsonl cannot be read", folder)


def test_what_is_not_a_number_is_null_in_json(tmp_path: Path) -> None:
    folder = filled(tmp_path, 0)
    made = Snapshot(1, {}, {}, {"round": 1, "loss": float("nan"), "vote_weight": {"0": float("inf")}})
    folder.add(made)
    folder.save(made)
    for _ in range(2):
        (line,) = folder.metrics_file.read_text().splitlines()
        assert json.loads(line, parse_constant=pytest.fail) == {"round": 1, "loss": None, "vote_weight": {"0": None}}
        folder.claim(SMALL, resume=True)
        folder.release()


@pytest.mark.parametrize("left", range(0, 40, 7))
def test_a_line_that_was_cut_off_is_mended_from_the_checkpoint(left: int, tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    whole = folder.metrics_file.read_text()
    first = whole.index("\n") + 1
    folder.metrics_file.write_text(whole[: min(first + left, len(whole) - 1)])
    folder.claim(SMALL, resume=True)
    assert folder.metrics_file.read_text() == whole


def test_a_line_whose_checkpoint_is_missing_is_dropped(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    with folder.metrics_file.open("a") as file:
        file.write(json.dumps(snapshot(3).record) + '\n{"round": 4, "acc')
    folder.claim(SMALL, resume=True)
    assert [record["round"] for record in folder.metrics()] == [1, 2]


def test_a_run_killed_while_it_wrote_its_first_file_starts_again(tmp_path: Path) -> None:
    (tmp_path / "config.toml.part").write_text("seed = ")
    assert RunFolder(tmp_path).claim(SMALL, resume=True) is None
    assert RunFolder(tmp_path).config() == SMALL


def test_the_network_of_fewer_rounds_does_not_outlive_them(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    (tmp_path / NETWORK).write_bytes(b"of two rounds")
    folder.claim(replace(SMALL, rounds=2), resume=True)
    assert (tmp_path / NETWORK).is_file()
    folder.release()
    folder.claim(replace(SMALL, rounds=5), resume=True)
    assert not (tmp_path / NETWORK).exists()


def test_nobody_else_in_a_process_works_on_its_run(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    folder.claim(SMALL, resume=True)
    refuse("is the folder of a run that is going on", RunFolder(tmp_path), SMALL)
    refuse("is the folder of a run that is going on", folder, SMALL)  # it was not let go by the first refusal
    folder.release()
    assert RunFolder(tmp_path).claim(SMALL, resume=True) is not None


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.claim(SMALL, resume=False)
    claim = "import sys, pathlib; from fedvote.runs.folder import RunFolder as R; f = R(pathlib.Path(sys.argv[1])); "
    command = [sys.executable, "-c", claim + "f.claim(f.config(), True)", str(folder.path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1 and "is the folder of a run that is going on" in second.stderr
    folder.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


# A run that dies between any two file operations


class Dead(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    rounds = list(run(SMALL, RunFolder(path), device="cpu"))
    assert len(rounds) == 2
    return path


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Dies at the file replacement of this number: before it if even, after it if odd; halves are left behind."""
    left = [10**9]
    real = os.replace

    def replace_file(source: Path, target: Path) -> None:
        left[0] -= 2
        if left[0] == -2:
            Path(source).write_bytes(Path(source).read_bytes()[:7])
            raise Dead
        real(source, target)
        if left[0] == -1:
            raise Dead

    monkeypatch.setattr(os, "replace", replace_file)
    yield left


@pytest.mark.parametrize("moment", range(12))
def test_a_run_that_dies_between_any_two_file_operations_ends_with_the_same_bits(
    moment: int, mortal: list[int], undisturbed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    mortal[0] = moment
    with pytest.raises(Dead):
        list(run(SMALL, RunFolder(path), device="cpu"))
    mortal[0] = 10**9
    list(run(SMALL, RunFolder(path), device="cpu", resume=True))

    a, b = load_snapshot(path / "checkpoint.safetensors"), load_snapshot(undisturbed / "checkpoint.safetensors")
    assert_same(a.state, b.state)
    assert timeless(path) == timeless(undisturbed)
    for file in ("config.toml", "clients.json", "environment.json"):
        assert (path / file).read_bytes() == (undisturbed / file).read_bytes()


def test_a_finished_run_leaves_these_files(undisturbed: Path) -> None:
    assert contents(undisturbed).keys() >= {
        "config.toml", "metrics.jsonl", "clients.json", "environment.json", "checkpoint.safetensors",
    }  # fmt: skip
    counts = json.loads((undisturbed / "clients.json").read_text())["counts"]
    assert len(counts) == 3 and all(len(row) == 10 for row in counts)
    assert as_table(SMALL) == tomllib.loads((undisturbed / "config.toml").read_text()) | {
        "method": as_table(SMALL)["method"]
    }


# What to run, and where


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
    with pytest.raises(ConfigError, match=r"holds no run to go on with"):
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
    monkeypatch.setattr(experiment, "save_network", lambda *_: None)
    made: Any = SimpleNamespace(rounds=100)
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
    with pytest.raises(DataError, match=r"numbers returned a list, expected what fedvote\.from_arrays makes"):
        experiment.dataset(f"{file}:numbers")
    with pytest.raises(ConfigError, match="there is no dataset 'mnist'"):
        experiment.dataset("mnist")
