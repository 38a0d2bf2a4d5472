"""Every study that a page names exists, with the rows and options that the page gives it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fedvote.studies.bench import BENCHMARKS, benchmark
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.comparison import Comparison, configured

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "results" / "README.md",
    ROOT / "peers" / "README.md",
    *(ROOT / "docs").rglob("*.md"),
]
COMMAND = re.compile(r"(?:`|^)fedvote\s+(bench|reproduce)\s+([^`#\n\\]*(?:\\\n[^`#\n\\]*)*)", re.MULTILINE)
FOUND = {found for page in PAGES for found in COMMAND.findall(page.read_text()) if found[1].strip()}
COMMANDS = sorted(found for found in FOUND if ".py:" not in found[1].split()[0])  # test_pages.py runs the user's own


def options(words: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        found.setdefault(name.removeprefix("--"), []).append(value)
    return found


@pytest.mark.parametrize(("command", "line"), COMMANDS)
def test_a_command_on_a_page_can_be_started(command: str, line: str) -> None:
    name, *words = (word for word in shlex.split(line.replace("\\\n", " ")) if word != "--list")
    given = options(words)
    if command == "bench":
        assert name in BENCHMARKS
        asked: dict[str, Any] = {key: given[key] for key in ("only", "model", "set") if key in given}
        asked |= {key: given[key][0] for key in ("preset", "device") if key in given}
        asked |= {"clients": [int(value) for value in given.get("clients", [])]}
        asked |= {"rounds": int(given["rounds"][0])} if "rounds" in given else {}
        benchmark(name, **asked)
        return
    assert given.keys() <= {"seeds", "rounds", "only", "set", "device", "jobs", "out", "earlier"}
    for experiment in EXPERIMENTS.values() if name == "all" else [EXPERIMENTS[name]]:
        if isinstance(experiment, Comparison):
            wanted = Asked(only=tuple(given.get("only", ())), settings=tuple(given.get("set", ())))
            assert [configured(cell, 0, wanted) for cell in experiment.wanted(wanted)]


def test_pages_name_studies() -> None:
    assert {command for command, _ in COMMANDS} == {"bench", "reproduce"} and len(COMMANDS) > 20
