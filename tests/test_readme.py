"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fedvote import load_network
from fedvote.codecs.frame import VERSION
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.run import run

README = Path(__file__).parent.parent / "README.md"
FOLDERS = (".github", "docs", "examples", "results")  # that have pages


def test_the_ten_lines_train_a_binary_network() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["snapshot"].record["accuracy"] > 0.85
    assert set(names["binary"][0].weight.unique().tolist()) == {-1.0, 1.0}
    x, y = names["data"].test.take(slice(None))
    one_at_a_time = torch.cat([names["binary"](row[None]) for row in x]).argmax(1)
    assert float((one_at_a_time == y).float().mean()) > 0.85


def test_a_run_is_exported_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (README.parent / "docs" / "export.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert {path.name for path in tmp_path.iterdir()} == {
        "network.onnx", "network-int8.onnx", "network.c", "network.h", "runs"
    }  # fmt: skip


def test_every_file_that_a_page_links_to_is_there() -> None:
    root = README.parent
    pages = [*root.glob("*.md"), *(page for folder in FOLDERS for page in (root / folder).rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\((?!https:)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_it_is_a_front_door_that_names_what_the_rule_does_not_stop() -> None:
    text = README.read_text()
    assert len(text.splitlines()) < 150
    assert "not safe against attackers who know it" in text and "backdoor" in text


def test_what_may_be_added_works_as_shown(tmp_path: Path) -> None:
    text = (README.parent / "docs" / "architecture.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "mine.py"
    file.write_text(code)
    parts = re.findall(r"--set ([a-z.]+=)mine\.py:([A-Za-z]+)", code)
    assert len(parts) == 5
    settings = [f"{key}{file}:{name}" for key, name in parts]
    config = read("quickstart", [*settings, "federation.hostile=3", "rounds=2", "local.steps=2", "local.batch=8"])
    (*_, last) = run(config, RunFolder(tmp_path / "run"), device="cpu")
    assert len(set(last.record["vote_weight"].values())) == 1 and "refused" not in last.record
    assert load_network(tmp_path / "run")(torch.zeros(1, 1, 8, 8)).shape == (1, 3)


def test_the_wire_format_that_is_described_is_the_one_that_is_written() -> None:
    text = (README.parent / "docs" / "wire-format.md").read_text()
    assert text.startswith(f"# The wire format, version {VERSION}\n") and f"| version | {VERSION} |" in text
