"""Every block of code of a page runs, or the page says why not.

Python blocks of a page share their names. A block that begins with a comment `# NAME.py` or `# NAME.toml` is saved
under that name first. A block without a language is for a shell; its runs are short. Comments above a block:

    <!-- not run: it needs CIFAR-10 -->
    <!-- run first: ... -->         lines that make the names of a fragment

`<!-- commands are not run: ... -->` anywhere on a page is the reason of all its commands. Commands that are not run are
read all the same: commands, options, presets, keys and names have to be there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import torch
import typer

import fedvote
from fedvote.cli import app, main
from fedvote.data import load
from fedvote.runs.catalogue import registry
from fedvote.runs.config import read
from fedvote.runs.presets import presets

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "examples", "peers", "results")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
SLOW = {"docs/tutorials/between-machines.md", "docs/tutorials/on-a-device.md"}  # they start other programs

SHOWN = {"c", "nginx", "text", "toml"}  # languages of blocks that are read, not run
BLOCK = re.compile(
    r"(?:^<!-- run first:\n(.*?)-->\n)?(?:^<!-- not run: ([^>]+?) -->\n)?^```([\w{}-]*)\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
COMMANDS_ARE_NOT = re.compile(r"<!-- commands are not run: ([^>]+?) -->")
FILE = re.compile(r"# ([\w-]+\.(?:py|toml))\n")
SHORT = ("rounds=2", "local.steps=2", "local.batch=8", "engine.test_batch=100")


@dataclass(frozen=True)
class Block:
    first: str  # lines that readers do not see
    language: str
    code: str
    reason: str  # why it is not run; empty: it is

    def lines(self) -> list[str]:
        """The commands of a shell block, without comments, each on one line."""
        joined = self.code.replace("\\\n", " ").splitlines()
        return [line for line in joined if line.split("#", 1)[0].strip()]


def blocks(name: str) -> list[Block]:
    text = (ROOT / name).read_text(encoding="utf-8")
    for_all = COMMANDS_ARE_NOT.findall(text)
    of_page = for_all[0] if for_all else ""
    return [
        Block(first, language, code, reason or (of_page if not language else ""))
        for first, reason, language, code in BLOCK.findall(text)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_block_has_a_language_that_is_known_and_a_reason_if_it_is_not_run(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = blocks(name)
    assert 2 * len(found) == len(re.findall("^```", text, re.MULTILINE)), "a block without an end"
    for block in found:
        assert block.language in {"", "python", *SHOWN} or block.language.startswith("{"), block
        assert not block.reason or len(block.reason.split()) >= 3, "say why it is not run"
    assert len(re.findall("^<!-- not run: ", text, re.MULTILINE)) == sum(bool(hit[1]) for hit in BLOCK.findall(text))


@pytest.fixture
def page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module for the names of a page, in a folder of its own that has the examples."""
    found = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", found)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if name.startswith("examples/"):  # its commands are typed in its own folder
        for file in (ROOT / name).parent.iterdir():
            (tmp_path / file.name).symlink_to(file)
    before = set(sys.modules)
    yield found
    for module in set(sys.modules) - before:  # the page's own files: another page may have others of that name
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]


def to_run() -> list[Any]:
    """Pages with a block that runs."""
    names = [name for name in NAMES if any(runs(block) for block in blocks(name))]
    compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
    marks = {"docs/tutorials/on-a-device.md": [pytest.mark.slow, compiler]}
    return [pytest.param(name, marks=marks.get(name, [pytest.mark.slow] if name in SLOW else [])) for name in names]


def runs(block: Block) -> bool:
    return block.language in ("", "python") and not block.reason


@pytest.mark.usefixtures("translated_once")
@pytest.mark.parametrize("name", to_run())
def test_a_page_runs_from_top_to_bottom(name: str, page: ModuleType) -> None:
    for block in blocks(name):
        if file := FILE.match(block.code):
            Path(file[1]).write_text(block.code, encoding="utf-8")
    for block in filter(runs, blocks(name)):
        if block.language == "python":
            exec(compile(block.first + block.code, name, "exec"), vars(page))
        else:
            for line in block.lines():
                run_command(line)
    if name in AFTERWARDS:
        AFTERWARDS[name](vars(page))


def run_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] != "fedvote" or set(line) & set("|<>;&$"):
        subprocess.run(["sh", "-e", "-c", shortened(line)], check=True)
        return
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(shortened(line), comments=True)[1:])
    assert stop.value.code == 0, line


def shortened(line: str) -> str:
    """A run, or a sweep, of two short rounds on the CPU; runs that name no folder have folders of their own."""
    if not re.match(r"fedvote (run|sweep)\b(?!.*--resume)", line):
        return line
    out = [] if "--out" in line else [f"--out runs/{len(list(Path('runs').glob('*')))}"]
    return " ".join([line.split(" #")[0], "--device cpu", *out, *(f"--set {setting}" for setting in SHORT)])


@pytest.mark.parametrize("name", [name for name in NAMES if any(block.reason for block in blocks(name))])
def test_commands_that_are_not_run_are_there(name: str) -> None:
    for block in blocks(name):
        if block.reason and block.language == "":
            for line in block.lines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["fedvote"] and "..." not in words:
                    assert_understood(words[1:])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "CHANGELOG.md"])
def test_commands_in_sentences_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    sentences = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    for command in re.findall(r"`(fedvote [a-z][^`]+)`", sentences):
        words = shlex.split(command)[1:]
        if words == ["secure", "tally", "1"]:  # a label from which keys are derived
            continue
        with suppress(click.MissingParameter, click.BadOptionUsage):  # named alone, without its argument
            assert_understood(words)


def assert_understood(words: list[str]) -> None:
    """A command of `fedvote`: its options, its preset and settings, its experiment or benchmark exist."""
    command: click.Command = typer.main.get_command(app)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, words
        command, words = command.commands[words[0]], words[1:]
    if isinstance(command, click.Group):
        assert {option for option in words} <= {"--help", "--version", "--install-completion"}, words
        return
    given = command.make_context(str(command.name), list(words)).params
    source, settings = given.get("source") or "quickstart", given.get("set") or []
    if source in presets() and not any(".py:" in setting for setting in settings):
        read(source, settings)
    kinds = {"experiment": "experiments", "name": "benchmarks"}
    for parameter in kinds.keys() & given.keys():
        own = ".py:" in (given[parameter] or "")
        assert own or given[parameter] in {None, "all", *registry(kinds[parameter])}, words


def _ten_lines(names: dict[str, Any]) -> None:
    assert names["snapshot"].record["accuracy"] > 0.85
    assert set(names["binary"].network[0].weight.unique().tolist()) == {-1.0, 1.0}
    x, y = torch.tensor(names["x"][400:], dtype=torch.float32), names["y"][400:]
    one_at_a_time = torch.cat([names["binary"](row[None]) for row in x]).argmax(1)
    assert (one_at_a_time.numpy() == y).mean() == pytest.approx(names["snapshot"].record["accuracy_calibrated"])


def _exports(names: dict[str, Any]) -> None:
    assert {"network.onnx", "network-int8.onnx", "network.c", "network.h"} <= {path.name for path in Path().iterdir()}


def _parts(names: dict[str, Any]) -> None:
    assert names["snapshot"].record["accuracy"] > 0.85
    assert names["module"](torch.zeros(2, 30)).shape == (2, 2)
    assert [cell["row"] for cell in json.loads(Path("runs/paper/compare.ONE_BIT.json").read_text())["cells"]] == [
        "OneBit",
        "FedVote",
        "FedAvg",
    ]
    folders = sorted({file.parent for file in Path("runs").glob("*/metrics.jsonl")})
    assert len(folders) == 10
    for folder in folders:
        assert "refused" not in (folder / "metrics.jsonl").read_text()
        network: Any = fedvote.load_network(folder)
        assert network(torch.zeros(1, 1, 8, 8, dtype=network.dtype)).isfinite().all()
    _codec_of_ones_own(names["Nibbles"])


def _codec_of_ones_own(nibbles: Any) -> None:
    """It writes what it reads, and refuses the rest."""
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


def _device(names: dict[str, Any]) -> None:
    said = subprocess.run("./recognise < digits.bin", shell=True, check=True, capture_output=True, text=True).stdout
    logits = fedvote.load_network("runs/digits")(load("digits").test.x[:10])
    assert [int(line.split()[0]) for line in said.splitlines()] == logits.argmax(1).tolist()


def _attacks(names: dict[str, Any]) -> None:
    attacked, alone, camps, pushed, ruled = (names[name] for name in ("attacked", "alone", "camps", "pushed", "ruled"))
    assert attacked < alone - 0.1 and camps > alone - 0.03
    assert pushed < alone - 0.1 and ruled > alone - 0.03
    weights = names["weights"]
    assert all(weights[client] == 0 for client in names["run"].federation.hostile)


def _wines(names: dict[str, Any]) -> None:
    assert names["judged"]["accuracy"] > 0.7
    (shown,) = (block.code for block in blocks("docs/tutorials/own-network-and-data.md") if block.language == "text")
    assert shown in str(names["run"].federation.summary())


AFTERWARDS: dict[str, Callable[[dict[str, Any]], None]] = {  # what holds at the end of a page
    "README.md": _ten_lines,
    "docs/adding.md": _parts,
    "docs/export.md": _exports,
    "docs/tutorials/attack-and-defend.md": _attacks,
    "docs/tutorials/on-a-device.md": _device,
    "docs/tutorials/own-network-and-data.md": _wines,
}
