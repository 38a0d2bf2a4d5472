"""Trackers get every number of a run, and nothing is sent without the library."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import fedvote
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.track import TRACKERS, numbers

RECORD = {
    "round": 1, "accuracy": 0.5, "uplink_bytes": 7, "clients": [0, 1], "measured": {"flipped": 0.1},
    "refused": {"1": "client 1: noise"}, "metric": {"name": "x"}, "loss": None,
}  # fmt: skip
SENT = {"accuracy": 0.5, "uplink_bytes": 7, "flipped": 0.1, "refused": 1}


class Recorder:
    """A fake of all three libraries."""

    def __init__(self) -> None:
        self.sent: dict[str, Any] = {}
        self.closed = self.named = ""

    def add_scalar(self, key: str, value: float, round: int) -> None:
        self.sent |= {key: value, "round": round}

    def log(self, values: dict[str, float], step: int) -> None:
        self.sent |= values | {"round": step}

    log_metrics = log

    def add_text(self, *_: str) -> None: ...

    def log_params(self, settings: dict[str, Any]) -> None: ...

    def init(self, project: str, name: str, config: dict[str, Any]) -> Recorder:
        self.named = name
        return self

    def start_run(self, run_name: str) -> Any:
        self.named, self.closed = run_name, "mlflow's own"
        return nullcontext()

    def close(self) -> None:
        self.closed = "closed"

    finish = close


@pytest.mark.parametrize("name", TRACKERS)
def test_every_number_of_a_round_is_sent(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake: Any = Recorder()
    tensorboard = types.ModuleType("torch.utils.tensorboard")
    tensorboard.SummaryWriter = lambda folder: fake  # type: ignore[attr-defined]
    for module, found in (("torch.utils.tensorboard", tensorboard), ("mlflow", fake), ("wandb", fake)):
        monkeypatch.setitem(sys.modules, module, found)
    made = Snapshot(1, {}, {}, RECORD)
    assert list(fedvote.track([made], name, tmp_path / "a run", {"method.lr": 0.1})) == [made]
    assert fake.sent == SENT | {"round": 1} and fake.closed
    assert name == "tensorboard" or fake.named == "a run"


def test_lists_words_and_missing_numbers_are_left_out() -> None:
    assert numbers(RECORD) == SENT


def test_unknown_trackers_and_missing_libraries_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fedvote.ConfigError, match="no tracker 'wandbs'; known: tensorboard, mlflow, wandb; did you"):
        fedvote.track([], "wandbs")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(fedvote.ConfigError, match="the tracker mlflow needs mlflow, which is not installed"):
        fedvote.track([], "mlflow")


def test_a_run_that_does_not_start_leaves_nothing_behind(tmp_path: Path) -> None:
    def refuse(_: int) -> Snapshot:
        raise fedvote.ConfigError("no")

    pytest.importorskip("torch.utils.tensorboard", reason="the extra `tensorboard` is not installed")
    with pytest.raises(fedvote.ConfigError):
        list(fedvote.track(map(refuse, [1]), "tensorboard", tmp_path))
    assert not list(tmp_path.iterdir())
