"""Help is plain text in whole sentences, on a terminal of 80 columns, too."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
from click import Command as ClickCommand
from click import Group
from typer.testing import CliRunner

from fedvote import __version__
from fedvote.cli import app
from tests.cli.command import Command
from tests.cli.every_command import EVERY


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_sentence_is_whole_at_80_columns(path: tuple[str, ...], fedvote: Command) -> None:
    outcome = fedvote(*path, "--help")
    assert outcome.code == 0 and outcome.err == ""
    assert max(map(len, outcome.out.splitlines())) <= 80
    shown, command = " ".join(outcome.out.split()), EVERY[path]
    about = [command, *(command.commands.values() if isinstance(command, Group) else ())]
    for sentence in [*(str(each.help).split(". ")[0] for each in about), *helps_of(command)]:
        assert " ".join(textwrap.dedent(sentence).split()) in shown


def helps_of(command: ClickCommand) -> list[str]:
    return [help for parameter in command.params if (help := getattr(parameter, "help", None))]


def test_help_says_what_arguments_are(fedvote: Command) -> None:
    assert "A benchmark; without a name, list them" in fedvote("bench", "--help").out
    assert "A dataset: one of `fedvote list datasets`" in fedvote("data", "get", "--help").out


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["data", "--help"], ["list", "--help"]], ids=str)
def test_help_is_there(arguments: list[str], fedvote: Command) -> None:
    outcome = fedvote(*arguments)
    assert outcome.code == 0 and outcome.out.startswith("Usage: ")


@pytest.mark.parametrize("command", ["run", "sweep", "bench", "data get", "deploy local", "deploy certificates"])
def test_help_is_plain_text(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == 0 and "[" in shown.output and "\\" not in shown.output


def test_the_version_is_said(fedvote: Command) -> None:
    assert fedvote("--version").out == f"fedvote {__version__}\n"


def test_python_m_fedvote_is_the_same_command_line() -> None:
    command = [sys.executable, "-m", "fedvote"]
    listed = subprocess.run([*command, "list", "presets", "--json"], capture_output=True, text=True, check=False)
    assert listed.returncode == 0 and "quickstart" in json.loads(listed.stdout)["presets"] and listed.stderr == ""
    wrong = subprocess.run([*command, "list", "presetz"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and wrong.stdout == "" and wrong.stderr.startswith("fedvote: cannot list 'presetz'")
    assert wrong.stderr.count("\n") == 1
