"""The page of stable names describes every name that people can see."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import typer

import fedvote
from fedvote.cli import app
from fedvote.report.html_tables import ROUND_COLUMNS
from fedvote.report.left_out import EVENTS
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from tests.engines.flower import grid

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "stable.md").read_text()
TYPES: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "list": list, "object": dict}


def section(title: str) -> str:
    """What stands below a heading, up to the next of the same rank or above."""
    rank = title.partition(" ")[0]
    (found,) = re.findall(rf"^{title}\n(.*?)(?=^#{{2,{len(rank)}}} |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def fields(title: str) -> dict[str, type | tuple[type, ...]]:
    """The fields in the table below a heading, with their types."""
    return {name: TYPES[kind] for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", section(title), re.MULTILINE)}


def names(title: str) -> set[str]:
    """Whatever is in backticks below a heading."""
    return set(re.findall(r"`([^`\n]+)`", section(title)))


def files() -> set[str]:
    """The files in the first column of the table of the run folder."""
    columns = re.findall(r"^\| (`[^|]+) \|", section("## The run folder"), re.MULTILINE)
    return set(re.findall(r"`([^`]+)`", "".join(columns)))


SIMULATED, OVER_FLOWER, MEASURED = map(fields, ("### Every run", "### Runs over Flower", "### In `measured`"))
BACKDOOR = fields("### With the attack `backdoor`")


def assert_described(record: Mapping[str, Any], known: Mapping[str, type | tuple[type, ...]]) -> None:
    assert record.keys() <= known.keys()
    for name, value in record.items():
        assert isinstance(value, known[name]), (name, value)
    measured = record.get("measured", {})
    assert measured.keys() <= MEASURED.keys()
    assert all(isinstance(value, float) for value in measured.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round of the quickstart with hostile clients and a rule against them."""
    path = tmp_path_factory.mktemp("runs") / "hostile"
    settings = ["rounds=1", "local.steps=2", "local.batch=8", "federation.hostile=3", "attack=inverse"]
    for _ in run(read("quickstart", [*settings, "method.reputation=camps"]), RunFolder(path), device="cpu"):
        pass
    return path


def test_every_field_of_a_simulated_round_is_described(folder: Path) -> None:
    (line,) = (folder / "metrics.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert_described(record, SIMULATED)
    assert SIMULATED.keys() - record.keys() == {"refused", "metric"}  # nobody was, and it is accuracy
    assert record["measured"].keys() == MEASURED.keys()


def test_every_field_of_a_round_over_flower_is_described(tmp_path: Path) -> None:
    fails_first, garbles = grid.in_round(1, grid.faulty(2)), grid.alter(grid.flip)
    first, second = grid.run(tmp_path, {0: fails_first, 1: garbles}, "rounds=2")
    for record in (first, second):
        assert_described(record, SIMULATED | OVER_FLOWER)
    assert "failed" in first and "returned" in second and "refused" in second
    assert {path.name for path in tmp_path.iterdir()} <= files()


def test_every_field_that_a_report_shows_is_described() -> None:
    assert EVENTS.keys() | ROUND_COLUMNS.keys() <= SIMULATED.keys() | OVER_FLOWER.keys() | BACKDOOR.keys()


def test_every_file_of_a_run_is_described(folder: Path) -> None:
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} <= files()


def test_every_public_name_is_described() -> None:
    assert set(fedvote.__all__) <= names("## Names in Python")


def test_every_contract_that_is_described_is_there() -> None:
    contracts = [name for name in names("## Contracts") if name.startswith("fedvote.")]
    assert len(contracts) == 7
    for contract in contracts:
        module, _, name = contract.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), name), type)


def test_every_command_is_described() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    assert group.commands.keys() <= {name.removeprefix("fedvote ") for name in names("## Commands")}
