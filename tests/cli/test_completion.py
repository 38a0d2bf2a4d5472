"""Shells complete words, asked as their own scripts ask, and never wait for torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fedvote.cli.source_names import configuration_keys, names_in
from fedvote.runs.catalogue import REGISTRIES, registry
from fedvote.runs.keys import settings

CODE = """
import sys
from fedvote.cli import main
try:
    main([])
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def ask(folder: Path, **environment: str) -> str:
    """What the command says when a script of a shell calls it."""
    known = os.environ | environment
    made = subprocess.run(
        [sys.executable, "-c", CODE], env=known, cwd=folder, capture_output=True, text=True, check=True
    )
    assert made.stderr == "False\n"
    return made.stdout


def bash(line: str, folder: Path) -> list[str]:
    last = str(line.count(" "))
    return ask(folder, _FEDVOTE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=last).split()


def zsh(line: str, folder: Path) -> list[str]:
    answer = ask(folder, _FEDVOTE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).strip()
    items = answer.removeprefix("_arguments '*: :((").removesuffix("))'")
    return [item.split('"')[1] for item in items.splitlines() if answer != "_files"]


def fish(line: str, folder: Path) -> list[str]:
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    answer = ask(folder, _FEDVOTE_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS=line, **action)
    return [item.split("\t")[0] for item in answer.splitlines() if item]


@pytest.mark.parametrize("shell", [bash, zsh, fish], ids=lambda shell: shell.__name__)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fedvote re", ["reproduce", "report"]),
        ("fedvote run qui", ["quickstart"]),
        ("fedvote run mine", []),
        ("fedvote --", ["--version", "--install-completion", "--show-completion", "--help"]),
        ("fedvote list re", ["reputations"]),
        ("fedvote run --set federation.c", ["federation.clients=", "federation.cohort="]),
        ("fedvote keys method.reputation.s", ["method.reputation.start"]),
        ("fedvote report ru", ["runs/a", "runs/b"]),
        ("fedvote run --resume --out runs/b", ["runs/b"]),
        ("fedvote data get fem", ["femnist"]),
        ("fedvote cost vgg", ["vgg7"]),
        ("fedvote reproduce table-1", ["table-1"]),
    ],
)
def test_a_word_is_completed(
    shell: Callable[[str, Path], list[str]], line: str, offered: list[str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.toml").touch()
    (tmp_path / "runs" / "no-run").mkdir()
    assert shell(line, tmp_path) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_the_command(shell: str, tmp_path: Path) -> None:
    script = ask(tmp_path, _FEDVOTE_COMPLETE=f"source_{shell}")
    assert f"_FEDVOTE_COMPLETE=complete_{shell}" in script


def test_bash_completes_by_the_script_it_is_given(tmp_path: Path) -> None: ...


def test_names_read_from_the_source_are_those_that_are_there() -> None:
    assert set(configuration_keys()) == {setting.key for setting in settings()}
    for kind, where in REGISTRIES.items():
        assert names_in(where) == list(registry(kind))
