"""Real processes, really killed: a run that is resumed ends with the same bits as one that was left alone.

The run that is left alone, and those that go on to the end, are run by this process: starting one takes seconds.
"""

from __future__ import annotations

import io
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from fedvote.cli import main
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot
from tests.cli.command import Outcome
from tests.toy import assert_same

ROUNDS = 16
SETTINGS = {
    "rounds": ROUNDS, "federation.clients": 5, "federation.cohort": 3, "local.steps": 3, "local.batch": 16,
    "method.reputation": "proportional", "method.train_float": "true",
}  # fmt: skip


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedvote", "run", *arguments, "--device", "cpu"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def first(folder: Path) -> list[str]:
    """The arguments that start a run in this folder, or go on with it."""
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    return ["quickstart", *settings, "--out", str(folder), "--resume"]


def wait_for_rounds(process: subprocess.Popen[str], rounds: int) -> list[str]:
    """What it said up to the end of so many more rounds, or to its own end."""
    assert process.stderr is not None
    said: list[str] = []
    while sum(line.startswith("round ") for line in said) < rounds and (line := process.stderr.readline()):
        said.append(line)
    return said


def whole(*arguments: str) -> Outcome:
    """A run to its end."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as stop, redirect_stdout(out), redirect_stderr(err):
        main(["run", *arguments, "--device", "cpu"])
    assert isinstance(stop.value.code, int)
    return Outcome(stop.value.code, out.getvalue(), err.getvalue())


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def measured(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in record.items() if not k.startswith("seconds")} for record in records]


def checkpoint(folder: Path) -> Snapshot:
    return load_snapshot(folder / "checkpoint.safetensors")


def assert_same_run(a: Path, b: Path) -> None:
    assert checkpoint(a).round == checkpoint(b).round
    assert_same(checkpoint(a).state, checkpoint(b).state)
    assert_same(checkpoint(a).memory, checkpoint(b).memory)
    assert measured(a) == measured(b)
    for file in ("config.toml", "clients.json", "environment.json"):
        assert (a / file).read_bytes() == (b / file).read_bytes()


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("left-alone") / "run"
    ended = whole(*first(folder))
    assert ended.code == 0, ended.err
    assert [record["round"] for record in measured(folder)] == list(range(1, ROUNDS + 1))
    return folder


def test_a_run_killed_again_and_again_ends_with_the_same_bits(left_alone: Path, tmp_path: Path) -> None:
    draw, folder, kills = random.Random(1), tmp_path / "run", 0
    for rounds in (0, 1, 2):  # the rest of the way to the next kill is left to chance
        process = start(*first(folder))
        if rounds == 0:
            time.sleep(draw.uniform(0, 2))
        wait_for_rounds(process, rounds)
        time.sleep(draw.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        code, _, _ = finish(process)
        assert code in (-signal.SIGKILL, 0)
        kills += code != 0
    assert kills == 3
    assert 1 <= checkpoint(folder).round < ROUNDS  # not every round has one: they take a tenth of the time
    ended = whole("--resume", "--out", str(folder))
    assert ended.code == 0 and "deployed network" in ended.out, ended.err
    assert_same_run(folder, left_alone)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell that runs the tests in the background has them ignore SIGINT, and what they start would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_says_how_to_go_on_and_does(left_alone: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*first(folder))
    wait_for_rounds(process, 2)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    done = checkpoint(folder).round
    assert code == 130 and out == "" and "Traceback" not in err
    assert 1 <= done < ROUNDS
    advice = err.splitlines()[-1]
    resume = f"with: fedvote run --resume --out {re.escape(str(folder))}"
    kept = r"( after round (\d+), its last checkpoint,)?"
    found = re.fullmatch(rf"stopped after round (\d+) of {ROUNDS}; resume{kept} {resume}", advice)
    assert found and int(found[3] or found[1]) == done, advice

    ended = whole(*advice.partition("fedvote run ")[2].split())
    assert ended.code == 0 and ended.err.split()[:2] == ["round", f"{done + 1}/{ROUNDS}"]
    assert_same_run(folder, left_alone)
