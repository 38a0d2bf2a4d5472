"""The command line as fixtures: called, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedvote.cli import main
from tests.cli.command import Command, Outcome, Refusal, contents


@pytest.fixture
def fedvote(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process, with tmp_path as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDVOTE_DATA", str(tmp_path / "no-data"))

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        code = stop.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(fedvote: Command, tmp_path: Path) -> Refusal:
    """The one sentence with which a command is refused; nothing below the working directory may change."""

    def call(*arguments: str) -> str:
        before = contents(tmp_path)
        outcome = fedvote(*arguments)
        assert contents(tmp_path) == before
        assert outcome.code == 2 and outcome.out == ""
        assert outcome.err.startswith("fedvote: ") and outcome.err.count("\n") == 1 and outcome.err.endswith("\n")
        assert "Traceback" not in outcome.err
        return outcome.err

    return call
