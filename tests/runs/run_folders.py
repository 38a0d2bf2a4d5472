"""Run folders with a few rounds in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fedvote import FedVote
from fedvote.errors import ConfigError
from fedvote.plan import Clients, LocalTraining
from fedvote.reputation import Proportional
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import Config
from fedvote.runs.folder import RunFolder

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
    assert claim(folder, config, resume=False) is None
    for round in range(1, rounds + 1):
        folder.add(snapshot(round))
        folder.save(snapshot(round))
    release(folder)
    return folder


def refuse(sentence: str, folder: RunFolder, config: Config = SMALL, resume: bool = True) -> None:
    """The claim is refused, and the folder stays as it is."""
    before = contents(folder.path) if folder.path.is_dir() else None
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refusal:
        claim(folder, config, resume)
    assert "\n" not in str(refusal.value)
    assert before == (contents(folder.path) if folder.path.is_dir() else None)
