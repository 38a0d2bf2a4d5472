"""A checkpoint from disk is used only if rounds of this federation can have made it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fedvote import ConfigError
from fedvote.core import State
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot, save_snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.own_files import changed
from fedvote.runs.simulated_run import run

SETTINGS = ["rounds=2", "federation.clients=2", "local.steps=1", "local.batch=20", "engine.evaluate_every=9"]


CAMPS = ("method.reputation=camps",)
KEPT = ("method.levels=3", "method.train_float=true", "federation.cohort=1", "federation.kept_broadcasts=3", "rounds=3")


def finished_run(folder: Path, settings: Sequence[str]) -> Path:
    list(run(read("quickstart", [*SETTINGS, *settings]), RunFolder(folder), device="cpu"))
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory.mktemp("finished") / "run", CAMPS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory.mktemp("kept") / "run", KEPT)


def resume(
    folder: Path, changed: Callable[[State], None], tmp_path: Path, settings: Sequence[str] = (*CAMPS, "rounds=3")
) -> None:
    """Resume a copy of the run from a changed checkpoint."""
    snapshot = load_snapshot(folder / "checkpoint.safetensors")
    changed(snapshot.state)
    for name in ("config.toml", "metrics.jsonl"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    save_snapshot(tmp_path / "checkpoint.safetensors", snapshot)
    config = read("quickstart", [*SETTINGS, *settings])
    list(run(config, RunFolder(tmp_path), device="cpu", resume=True))


def test_an_unchanged_checkpoint_is_resumed(finished: Path, tmp_path: Path) -> None:
    resume(finished, lambda state: None, tmp_path)
    assert len(RunFolder(tmp_path).metrics()) == 3


def put(name: str, value: float) -> Callable[[State], None]:
    def change(state: State) -> None:
        state[name][..., 0] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put("plurality", 7), "the plurality has votes other than -1, 1"),
        (put("plurality", 0), "the plurality has votes other than -1, 1"),
        (put("level", 30000), "the soft vote has levels 0 to 30000"),
        (put("held/level", 30000), "the soft vote has levels 0 to 30000"),
        (put("held/level", -1), "the soft vote has levels -1 to "),
        (put("held/levels", 0), "expected 0 to 0, with 1 or more as the highest"),
        (put("layers", 0), "the layers have"),
        (put("layers", 10**9), "the layers have"),
        (put("level", -1), "the soft vote has levels -1 to 2"),
        (put("float", float("nan")), "float has values that are not finite"),
        (put("reputation/reputation", float("inf")), "reputation/reputation has values that are not finite"),
        (lambda state: state.pop("level"), r"\(it lacks level\)"),
        (lambda state: state.update(extra=torch.zeros(3)), r"\(it has also extra\)"),
        (lambda state: state.update(extra=state.pop("level")), r"\(it lacks level and has also extra\)"),
        (lambda state: state.update(plurality=torch.ones(3)), r"plurality is torch.float32 of shape \(3,\)"),
        (lambda state: state.update(level=state["level"].float()), "level is torch.float32"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_no_round_can_have_made_is_refused(
    change: Callable[[State], None], sentence: str, finished: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"checkpoint\.safetensors is not of this run.*{sentence}") as refusal:
        resume(finished, change, tmp_path)
    assert "\n" not in str(refusal.value)


def test_a_checkpoint_of_a_version_whose_rule_remembered_less_says_so(finished: Path, tmp_path: Path) -> None:
    def earlier(state: State) -> None:
        for name in ("front", "back", "together", "clique"):
            del state[f"reputation/{name}"]

    lacks = "it lacks reputation/back, reputation/clique, reputation/front, reputation/together"
    with pytest.raises(
        ConfigError, match=rf"another version of fedvote.*\({lacks}\): .*resume the run with that version"
    ):
        resume(finished, earlier, tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: state.pop("held-round"), "it lacks held-round"),
        (lambda state: state.update({"held-round": torch.zeros(0, dtype=torch.int64)}), r"held-round is .*\(0,\)"),
        (put("held-round", 4), "held-round has rounds from "),
        (lambda state: state.pop("held-earlier/2/levels"), "it lacks held-earlier/2/levels"),
        (lambda state: state.pop("held-earlier/2/float"), "it lacks held-earlier/2/float"),
        (lambda state: state.update({"held-earlier/2/levels": torch.zeros(1).short()}), "expected 0 to 0"),
        (lambda state: state.update({"held-earlier/2/float": torch.zeros(1).byte()}), "float is torch.int16"),
        (put("held-earlier/2/float", float("nan")), "float has values that are not finite"),
    ],
)
def test_kept_broadcasts_that_no_round_can_have_made_are_refused(
    change: Callable[[State], None], sentence: str, kept: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"checkpoint\.safetensors is not of this run.*{sentence}") as refusal:
        resume(kept, change, tmp_path, (*KEPT, "rounds=4"))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "record", ["[1]", "null", "3", '{"round": "2"}', '{"round": 9}', "[" * 100_000, "{", '{"a": 1}']
)
def test_a_record_that_is_none_is_one_sentence(record: str, finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_file(load_file(finished / "checkpoint.safetensors"), path, {"round": "2", "record": record})
    advice = "restore it from a copy; if there is none, start the run again in another folder"
    with pytest.raises(ConfigError, match=rf"checkpoint\.safetensors is damaged or cannot be read \(.*\): {advice}$"):
        load_snapshot(path)


def test_a_checkpoint_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_snapshot(tmp_path)  # a folder


@pytest.mark.parametrize("content", ["", "{", "[1]", "3", "null", "[" * 100_000, "\xff"])
def test_a_damaged_environment_is_one_sentence(content: str, tmp_path: Path) -> None:
    folder, config = RunFolder(tmp_path), read("quickstart")
    claim(folder, config, resume=False)
    folder.add(Snapshot(1, {}, {}, {"round": 1}))
    folder.environment_file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"environment\.json is damaged") as refusal:
        changed(folder, config)
    release(folder)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, '{"round": true}', '{"round": 1, "uplink_bytes": "many"}', '{"round": 1, "refused": [3]}',
     '{"round": 1, "clients": 5}', '{"round": 1, "accuracy": "good"}', "7", '"round"'],
)  # fmt: skip
def test_a_damaged_line_of_metrics_is_one_sentence(line: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.metrics_file.write_text(f"{line}\n{json.dumps({'round': 2})}\n")
    with pytest.raises(ConfigError, match=r"Line 1 of .*metrics\.jsonl is not a JSON object") as refusal:
        folder.metrics()
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 1000


def test_a_configuration_that_is_nested_too_deeply_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("seed = " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"deep\.toml is not TOML"):
        read(str(tmp_path / "deep.toml"))
