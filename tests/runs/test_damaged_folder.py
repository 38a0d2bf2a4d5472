"""A damaged run folder is refused and kept, or mended where a killed run left it half written."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fedvote.errors import ConfigError
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.folder import RunFolder
from tests.runs.run_folders import SMALL, contents, filled, refuse, snapshot


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
        (None, "lacks some of the 3 rounds before checkpoint.safetensors"),
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
        claim(folder, SMALL, resume=True)
        release(folder)


@pytest.mark.parametrize("left", range(0, 40, 7))
def test_a_line_that_was_cut_off_is_mended_from_the_checkpoint(left: int, tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    whole = folder.metrics_file.read_text()
    first = whole.index("\n") + 1
    folder.metrics_file.write_text(whole[: min(first + left, len(whole) - 1)])
    claim(folder, SMALL, resume=True)
    assert folder.metrics_file.read_text() == whole


def test_a_line_whose_checkpoint_is_missing_is_dropped(tmp_path: Path) -> None:
    folder = filled(tmp_path, 2)
    with folder.metrics_file.open("a") as file:
        file.write(json.dumps(snapshot(3).record) + '\n{"round": 4, "acc')
    claim(folder, SMALL, resume=True)
    assert [record["round"] for record in folder.metrics()] == [1, 2]


def test_a_run_killed_while_it_wrote_its_first_file_starts_again(tmp_path: Path) -> None:
    (tmp_path / "config.toml.part").write_text("seed = ")
    assert claim(RunFolder(tmp_path), SMALL, resume=True) is None
    assert RunFolder(tmp_path).config() == SMALL
