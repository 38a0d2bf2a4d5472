"""A run that dies between any two file operations ends with the same bits when it is resumed."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.runs.toml_tables import as_table
from tests.runs.run_folders import SMALL, contents
from tests.toy import assert_same


def timeless(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in record.items() if not k.startswith("seconds")} for record in records]


class Dead(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    rounds = list(run(SMALL, RunFolder(path), device="cpu"))
    assert len(rounds) == 2
    return path


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Dies at the file replacement of this number: before it if even, after it if odd; halves are left behind."""
    left = [10**9]
    real = os.replace

    def replace_file(source: Path, target: Path) -> None:
        left[0] -= 2
        if left[0] == -2:
            Path(source).write_bytes(Path(source).read_bytes()[:7])
            raise Dead
        real(source, target)
        if left[0] == -1:
            raise Dead

    monkeypatch.setattr(os, "replace", replace_file)
    yield left


@pytest.mark.parametrize("moment", range(12))
def test_a_run_that_dies_between_any_two_file_operations_ends_with_the_same_bits(
    moment: int, mortal: list[int], undisturbed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    mortal[0] = moment
    with pytest.raises(Dead):
        list(run(SMALL, RunFolder(path), device="cpu"))
    mortal[0] = 10**9
    list(run(SMALL, RunFolder(path), device="cpu", resume=True))

    a, b = load_snapshot(path / "checkpoint.safetensors"), load_snapshot(undisturbed / "checkpoint.safetensors")
    assert_same(a.state, b.state)
    assert timeless(path) == timeless(undisturbed)
    for file in ("config.toml", "clients.json", "environment.json"):
        assert (path / file).read_bytes() == (undisturbed / file).read_bytes()


def test_a_finished_run_leaves_these_files(undisturbed: Path) -> None:
    assert contents(undisturbed).keys() >= {
        "config.toml", "metrics.jsonl", "clients.json", "environment.json", "checkpoint.safetensors",
    }  # fmt: skip
    counts = json.loads((undisturbed / "clients.json").read_text())["counts"]
    assert len(counts) == 3 and all(len(row) == 10 for row in counts)
    assert as_table(SMALL) == tomllib.loads((undisturbed / "config.toml").read_text()) | {
        "method": as_table(SMALL)["method"]
    }
