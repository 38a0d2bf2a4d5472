"""The benchmark of exported networks: rows that agree with themselves."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedvote import ConfigError
from fedvote.studies.bench import benchmark, infer
from fedvote.studies.bench.infer import C_WAYS, WAYS, bench

pytestmark = pytest.mark.usefixtures("translated_once")

FEW = ("float", "binary")  # enough to see that there is no C


def test_every_way_has_a_row_and_packed_files_are_small() -> None:
    *rows, binary, ternary = bench(["digits-cnn"], repeats=1)
    assert [row["way"] for row in (*rows, binary, ternary)] == [*WAYS, *C_WAYS]
    size = {row["way"]: row["megabytes"] for row in rows}
    assert size["binary"] < size["float"] / 15 and size["ternary"] < size["float"] / 12
    assert size["binary, int8"] < size["float"] / 15
    for row in rows:
        assert all(0 < value < math.inf for value in row.values() if isinstance(value, float))
        for batch in (1, 100):
            whole = row[f"of_float_{batch}"] * row[f"milliseconds_{batch}"]
            assert whole == pytest.approx(rows[0][f"milliseconds_{batch}"])

    for row in (binary, ternary):
        assert row["of_float_1"] * row["milliseconds_1"] == pytest.approx(rows[0]["milliseconds_1"])
        assert 0 < row["milliseconds_1"] < math.inf and row["megabytes"] < size["float"] / 10


TANH = """
from torch import nn
def network(shape, classes):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 30 * 30, classes))
"""


def test_a_network_that_there_is_no_c_for_is_measured_without_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(infer, "WAYS", FEW)
    (tmp_path / "mine.py").write_text(TANH)
    rows = bench([f"{tmp_path / 'mine.py'}:network"], repeats=1)
    assert [row["way"] for row in rows] == list(FEW)
    assert "network is measured without C: " in capsys.readouterr().err


def test_without_a_compiler_there_is_no_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(infer, "WAYS", FEW)
    assert [row["way"] for row in bench(["digits-cnn"], repeats=1)] == list(FEW)
    assert "digits-cnn is measured without C: there is no C compiler here" in capsys.readouterr().err


def test_clients_cannot_be_chosen() -> None:
    with pytest.raises(ConfigError, match="the benchmark infer does not use --clients; it takes --model"):
        benchmark("infer", clients=[3])
