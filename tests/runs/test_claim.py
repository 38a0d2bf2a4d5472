"""The run folder is claimed by one run, and no other run is overwritten."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fedvote import FedAvg, FedVote
from fedvote.errors import ConfigError
from fedvote.reputation import Proportional
from fedvote.runs.claim import claim, release
from fedvote.runs.config import Config
from fedvote.runs.config_differences import differences
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.runs.toml_tables import build
from fedvote.training.schedules import Cosine
from tests.runs.run_folders import SMALL, contents, filled, refuse


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
    refuse("already holds a run (1 of 2 rounds): resume it with --resume", filled(tmp_path, 1), resume=False)


def test_another_run_is_not_resumed_and_the_difference_is_named(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    refuse("it differs in seed (0 there, 5 asked)", folder, replace(SMALL, seed=5))
    refuse("method.name ('fedvote' there, 'fedavg' asked)", folder, replace(SMALL, method=FedAvg()))


def test_the_same_run_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    before = contents(tmp_path)
    since = claim(folder, SMALL, resume=True)
    assert since is not None and since.round == 2 and since.state["level"].tolist() == [2, 2]
    assert contents(tmp_path) == before


def test_a_run_can_be_made_longer_but_not_shorter_than_it_is(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    refuse("has 2 rounds already, asked for 1", folder, replace(SMALL, rounds=1))
    assert claim(folder, replace(SMALL, rounds=9), resume=True) is not None
    config = folder.config()
    assert config is not None and config.rounds == 9


def test_what_failed_before_its_first_round_can_be_started_again_and_otherwise(tmp_path: Path) -> None:
    folder, other = filled(tmp_path, 0), replace(SMALL, method=FedAvg())
    assert claim(folder, other, resume=False) is None and folder.config() == other
    release(folder)
    assert claim(folder, SMALL, resume=True) is None and folder.config() == SMALL


def test_what_does_not_make_it_another_run_is_not_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"it differs in seed \(0 there, 5 asked\);"):
        claim(filled(tmp_path, 1), replace(SMALL, seed=5, rounds=9), resume=True)


def test_differences_name_the_keys() -> None:
    assert differences(SMALL, SMALL) == []
    other = replace(SMALL, method=FedVote(reputation=Proportional(beta=0.75)))
    assert differences(SMALL, other) == ["method.reputation.beta (0.5 there, 0.75 asked)"]


def test_the_network_of_fewer_rounds_does_not_outlive_them(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    (tmp_path / NETWORK).write_bytes(b"of two rounds")
    claim(folder, replace(SMALL, rounds=2), resume=True)
    assert (tmp_path / NETWORK).is_file()
    release(folder)
    claim(folder, replace(SMALL, rounds=5), resume=True)
    assert not (tmp_path / NETWORK).exists()


def test_a_run_whose_schedule_ends_with_the_last_round_takes_no_more_rounds(tmp_path: Path) -> None:
    falling = replace(SMALL, local=replace(SMALL.local, lr_schedule=Cosine()))
    folder = filled(tmp_path, 1, falling)
    with pytest.raises(
        ConfigError,
        match=r"holds a run of 2 rounds whose schedule ends with the last of them.* another folder with --out",
    ):
        claim(folder, replace(falling, rounds=9), resume=True)
    assert claim(folder, falling, resume=True) is not None
