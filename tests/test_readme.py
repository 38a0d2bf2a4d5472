"""What the README shows works as shown."""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import fedvote
from fedvote import load_network
from fedvote.codecs.frame import VERSION
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.runs.sweep import in_order, points

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


def test_methods_are_compared_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints a line for each method and seed; the configuration and the swept settings are read."""
    text = (README.parent / "docs" / "comparing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        [name, seed] for name in ("FedVote", "FedPAQ") for seed in "12"
    ]
    (table,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mine.toml").write_text(table.replace("mine.py:pictures", "digits").replace("mine.py:network", "mlp"))
    search, measure, *_ = re.findall(r"^fedvote sweep mine.toml (.*?)$(?! )", text.replace("\\\n", ""), re.MULTILINE)
    for words in map(shlex.split, (search, measure)):
        swept = [value for option, value in itertools.pairwise(words) if option == "--over"]
        fixed = [value for option, value in itertools.pairwise(words) if option == "--set"]
        for point in points(swept):
            read(str(tmp_path / "mine.toml"), in_order([*fixed, *point]))


def test_every_file_that_a_page_links_to_is_there() -> None:
    root = README.parent
    pages = [*root.glob("*.md"), *(page for folder in FOLDERS for page in (root / folder).rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\((?!https:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_it_is_a_front_door_that_names_what_the_rule_does_not_stop() -> None:
    text = README.read_text()
    assert len(text.splitlines()) < 150
    assert "not safe against attackers who know it" in text and "backdoor" in text


def test_what_may_be_added_works_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python is saved under the name in its first line; every command runs, with short rounds."""
    text = (README.parent / "docs" / "adding.md").read_text()
    files = {name: code for code, name in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", text, re.DOTALL)}
    assert len(files) == text.count("```python")
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = runpy.run_path("program.py")
    assert names["snapshot"].record["accuracy"] > 0.85
    assert names["module"](names["data"].test.x[:2]).shape == (2, 2)

    commands = [shlex.split(line) for line in re.findall(r"^fedvote run quickstart (.*)$", text, re.MULTILINE)]
    assert files.keys() - {"program.py"} == {part for words in commands for part in re.findall(r"\w+\.py", str(words))}
    for number, words in enumerate(commands):
        settings = [word for word in words if word != "--set"]
        assert len(words) == 2 * len(settings)
        config = read("quickstart", [*settings, "rounds=2", "local.steps=2", "local.batch=8", "engine.test_batch=100"])
        snapshots = list(run(config, RunFolder(tmp_path / f"run-{number}"), device="cpu"))
        assert len(snapshots) == 2 and not any("refused" in snapshot.record for snapshot in snapshots)
        network: Any = load_network(tmp_path / f"run-{number}")
        assert network(torch.zeros(1, 1, 8, 8, dtype=network.dtype)).isfinite().all()


def test_the_codec_that_is_shown_writes_what_it_reads_and_refuses_the_rest(tmp_path: Path) -> None:
    text = (README.parent / "docs" / "adding.md").read_text()
    (code,) = re.findall(r"```python\n(# nibbles\.py\n.*?)```", text, re.DOTALL)
    (tmp_path / "nibbles.py").write_text(code)
    nibbles = runpy.run_path(str(tmp_path / "nibbles.py"))["Nibbles"]
    for count in (0, 1, 14, 15):
        x = torch.arange(count, dtype=torch.int8) - 7
        payload = nibbles(count).encode(x)
        assert len(payload) == -(-count // 2) and torch.equal(nibbles(count).decode(payload), x)
    for payload in (b"", b"\x08", b"\x80", b"\x87\x80", b"\x87\x87", b"\x87\x08", b"\x87\x88\x88"):
        with pytest.raises(fedvote.WireError, match="3 whole numbers"):
            nibbles(3).decode(payload)
    for wrong in (torch.tensor([0, 8, 0]), torch.tensor([0, 1]), torch.zeros(3)):
        with pytest.raises(fedvote.WireError, match="3 whole numbers"):
            nibbles(3).encode(wrong)


def test_the_wire_format_that_is_described_is_the_one_that_is_written() -> None:
    text = (README.parent / "docs" / "wire-format.md").read_text()
    assert text.startswith(f"# The wire format, version {VERSION}\n") and f"| version | {VERSION} |" in text
