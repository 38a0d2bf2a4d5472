"""Parts of a user's own, as FILE.py:NAME: they run, and are refused in one sentence where they cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.folder import RunFolder
from fedvote.system import own_code
from tests.cli.command import SMALL, Command, Refusal
from tests.own_code import edit

OWN = """
from dataclasses import dataclass
from torch import nn
from fedvote import FedAvg

@dataclass(frozen=True)
class Mine(FedAvg):
    patience: int = 3

def tiny(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8, bias=False), nn.ReLU(), nn.Linear(8, classes))
"""


def test_users_own_methods_and_models_run_and_resume_from_anywhere(
    fedvote: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    own = ["--set", "method=own.py:Mine", "--set", "method.patience=7", "--set", "model=own.py:tiny"]
    assert fedvote("run", "quickstart", *SMALL, *own, "--out", "run").code == 0
    text = (tmp_path / "run" / "config.toml").read_text()
    assert f'name = "{tmp_path}/own.py:Mine"' in text and "patience = 7" in text
    assert f'name = "{tmp_path}/own.py:tiny"' in text
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert fedvote("run", "--resume", "--out", "../run", "--set", "rounds=3", "--device", "cpu").code == 0
    assert load_snapshot(tmp_path / "run" / "checkpoint.safetensors").round == 3


INTERRUPTED = """
from pathlib import Path

def sign(outputs, targets):
    if Path("stop").exists() and Path("run/metrics.jsonl").exists():
        raise KeyboardInterrupt
    return float(outputs.mean() > 0)
"""


def forget(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process, where nobody has named the file yet."""
    monkeypatch.setattr(own_code, "_named", set())
    monkeypatch.delitem(sys.modules, str(file))


def test_the_command_that_an_interrupted_run_prints_goes_on_with_users_own_files(
    fedvote: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(INTERRUPTED)
    (tmp_path / "stop").touch()
    stopped = fedvote("run", *SMALL, "--set", "metric=own.py:sign", "--out", "run")
    assert stopped.code == 130
    command = stopped.err.splitlines()[-1].partition("resume with: fedvote ")[2]
    assert command == "run --resume --out run --trust"
    forget(tmp_path / "own.py", monkeypatch)
    (tmp_path / "stop").unlink()
    assert fedvote(*command.split(), "--device", "cpu").code == 0
    assert load_snapshot(tmp_path / "run" / "checkpoint.safetensors").round == 2


def test_a_run_of_the_packages_own_parts_is_resumed_without_trust(fedvote: Command) -> None:
    assert fedvote("run", *SMALL, "--out", "two words").code == 0
    assert RunFolder(Path("two words")).resume_command() == "fedvote run --resume --out 'two words'"


def test_who_goes_on_with_another_file_of_the_same_name_is_told(fedvote: Command) -> None:
    own = Path("mine.py")
    own.write_text("from fedvote.reputation import Uniform\n\nclass Mine(Uniform):\n    pass\n")
    run = ["run", *SMALL[2:], "--out", "run", "--set", f"method.reputation={own}:Mine"]
    assert fedvote(*run, "--set", "rounds=1").code == 0
    same = fedvote(*run, "--set", "rounds=2", "--resume")
    edit(own, own.read_text() + "    best = True\n")
    other = fedvote(*run, "--set", "rounds=3", "--resume")
    assert same.code == other.code == 0 and "has changed" not in same.err
    assert f"{own.resolve()} has changed since this run began: its next rounds differ" in other.err


OWN_PARTS = """
from dataclasses import dataclass
from fedvote.reputation import Uniform

@dataclass(frozen=True)
class Needs(Uniform):
    share: float

def asks(something):
    return something

def fails(shape, classes):
    raise ValueError("too many classes")
"""


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("method.reputation=own.py:Needs", "needs share: set it, or give it a default"),
        ("data=own.py:asks", "expected a function without arguments that returns a"),
        ("model=own.py:fails", "could not be made for inputs of shape (1, 8, 8) and 10 classes (too many classes)"),
    ],
)
def test_parts_of_ones_own_that_cannot_be_made_are_refused(
    setting: str, sentence: str, refused: Refusal, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN_PARTS)
    assert sentence in refused("run", *SMALL, "--set", setting)
