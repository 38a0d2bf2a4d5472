"""Shells complete words, asked as their own scripts ask, and never wait for torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fedvote.cli import main
from fedvote.cli.source_names import configuration_keys, names_in
from fedvote.runs.catalogue import REGISTRIES, registry
from fedvote.runs.keys import settings

OFFERED = {
    "fedvote re": ["reproduce", "report"],
    "fedvote run qui": ["quickstart"],
    "fedvote run mine": [],
    "fedvote --": ["--version", "--install-completion", "--show-completion", "--help"],
    "fedvote list re": ["reputations"],
    "fedvote run --set federation.c": ["federation.clients=", "federation.cohort="],
    "fedvote keys method.reputation.s": ["method.reputation.start"],
    "fedvote report ru": ["runs/a", "runs/b"],
    "fedvote run --resume --out runs/b": ["runs/b"],
    "fedvote data get fem": ["femnist"],
    "fedvote cost vgg": ["vgg7"],
    "fedvote reproduce table-1": ["table-1"],
}
Ask = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, and a folder that is none."""
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.toml").touch()
    (tmp_path / "runs" / "no-run").mkdir()
    return tmp_path


@pytest.fixture
def ask(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """What the command says when a script of a shell calls it."""
    monkeypatch.chdir(folder)

    def call(**environment: str) -> str:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            main([])
        return capsys.readouterr().out

    return call


def asked_by_bash(line: str) -> dict[str, str]:
    return {"_FEDVOTE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}


def bash(line: str, ask: Ask) -> list[str]:
    return ask(**asked_by_bash(line)).split()


def zsh(line: str, ask: Ask) -> list[str]:
    answer = ask(_FEDVOTE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).strip()
    items = answer.removeprefix("_arguments '*: :((").removesuffix("))'")
    return [item.split('"')[1] for item in items.splitlines() if answer != "_files"]


def fish(line: str, ask: Ask) -> list[str]:
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    answer = ask(_FEDVOTE_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS=line, **action)
    return [item.split("\t")[0] for item in answer.splitlines() if item]


@pytest.mark.parametrize("shell", [bash, zsh, fish], ids=lambda shell: shell.__name__)
@pytest.mark.parametrize("line", OFFERED)
def test_a_word_is_completed(shell: Callable[[str, Ask], list[str]], line: str, ask: Ask) -> None:
    assert shell(line, ask) == OFFERED[line]


WITHOUT_TORCH = """
import json, os, sys
from fedvote.cli import main
for environment in json.loads(sys.argv[1]):
    os.environ |= environment
    try:
        main([])
    except SystemExit:
        assert "torch" not in sys.modules, environment
"""


def test_no_word_waits_for_torch(folder: Path) -> None:
    lines = json.dumps([asked_by_bash(line) for line in OFFERED])
    command = [sys.executable, "-c", WITHOUT_TORCH, lines]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [word for offered in OFFERED.values() for word in offered]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_the_command(shell: str, ask: Ask) -> None:
    assert f"_FEDVOTE_COMPLETE=complete_{shell}" in ask(_FEDVOTE_COMPLETE=f"source_{shell}")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_by_the_script_it_is_given(ask: Ask, folder: Path) -> None:
    (folder / "fedvote").write_text(f'#!/bin/sh\nexec {sys.executable} -m fedvote "$@"\n')
    (folder / "fedvote").chmod(0o755)
    words = "COMP_WORDS=(fedvote run qui); COMP_CWORD=2; _fedvote_completion fedvote; echo ${COMPREPLY[@]}"
    script = f"{ask(_FEDVOTE_COMPLETE='source_bash')}\n{words}"
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "_FEDVOTE_COMPLETE"} | {"PATH": path}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "quickstart\n", done.stderr


def test_names_read_from_the_source_are_those_that_are_there() -> None:
    assert set(configuration_keys()) == {setting.key for setting in settings()}
    for kind, where in REGISTRIES.items():
        assert names_in(where) == list(registry(kind))
