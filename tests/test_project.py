"""Files about the project that other programs read are well-formed, and agree with the package."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fedvote

ROOT = Path(__file__).parent.parent


def read_yaml(name: str) -> Any:
    return importlib.import_module("yaml").safe_load((ROOT / name).read_text())


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    cited = read_yaml("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # required by the format
    assert cited["version"] == fedvote.__version__
    paper = cited["preferred-citation"]
    assert paper["title"] == "Federated Learning via Plurality Vote"
    assert [author["family-names"] for author in paper["authors"]] == ["Yue", "Jin", "Wong", "Dai"]


def test_the_newest_changes_are_of_this_version_and_of_its_date() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", f"{fedvote.__version__}, {read_yaml('CITATION.cff')['date-released']}"]


def test_every_extra_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (table,) = re.findall(r"\| extra \| for \|\n\|---\|---\|\n((?:\|.*\n)+)", (ROOT / "docs" / "start.md").read_text())
    named = [name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(named) == sorted(project["optional-dependencies"])


def test_hooks_and_the_workflow_run_the_checks_of_make() -> None:
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"] for hook in local["hooks"]]
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    tools = [entry.removeprefix(".venv/bin/").removesuffix(" --force-exclude") for entry in entries]
    makefile = (ROOT / "Makefile").read_text()
    assert tools and all(f"$(BIN)/{tool}" in makefile for tool in tools)

    steps = [
        step.get("run", "") for job in read_yaml(".github/workflows/ci.yml")["jobs"].values() for step in job["steps"]
    ]
    assert any(step.startswith("make lint types unit") for step in steps)


@pytest.mark.parametrize("name", ["bug", "feature", "attack"])
def test_an_issue_template_has_a_name_and_says_what_it_is_for(name: str) -> None:
    _, head, body = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.md").read_text().split("---\n", 2)
    about = importlib.import_module("yaml").safe_load(head)
    assert about["name"] and about["about"] and body.strip()
