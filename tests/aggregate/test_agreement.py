"""Our rules against ByzFL's and Flower's, on stacks of several sizes; `vectors/make.py` says how they were called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fedvote.aggregate import Aggregate, CentredClipping, GeometricMedian, Krum, Mean, Median, TrimmedMean
from tests.aggregate.vectors.make import FILE, stack

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]
CONVERGED = GeometricMedian(iterations=5000, tolerance=1e-12)
OURS: dict[str, Callable[[int, int], Aggregate]] = {
    "byzfl Average": lambda K, f: Mean(),
    "byzfl Median": lambda K, f: Median(),
    "byzfl TrMean": lambda K, f: TrimmedMean(f),
    "byzfl Krum": lambda K, f: Krum(f, neighbours=K - f - 1),
    "byzfl MultiKrum": lambda K, f: Krum(f, select=K - f, neighbours=K - f - 1),
    "byzfl GeometricMedian T=3": lambda K, f: GeometricMedian(iterations=3, tolerance=0, smoothing=0.1),
    "byzfl GeometricMedian T=5000": lambda K, f: CONVERGED,
    "byzfl CenteredClipping L=1": lambda K, f: CentredClipping(radius=2, iterations=1),
    "byzfl CenteredClipping L=5": lambda K, f: CentredClipping(radius=2, iterations=5),
    "flower mean": lambda K, f: Mean(),
    "flower median": lambda K, f: Median(),
    "flower trimmed": lambda K, f: TrimmedMean(f),
    "flower serverapp trimmed": lambda K, f: TrimmedMean(f),
    "flower krum": lambda K, f: Krum(f),
    "flower multi-krum m=2": lambda K, f: Krum(f, select=2),
    "flower multi-krum m=K-f": lambda K, f: Krum(f, select=K - f),
    "flower serverapp krum": lambda K, f: Krum(f),
    "flower serverapp multi-krum m=2": lambda K, f: Krum(f, select=2),
}


def ours(case: dict[str, Any], name: str, dtype: torch.dtype = torch.float64) -> list[float]:
    K, f = case["K"], case["f"]
    rows_KD = torch.from_numpy(stack(case["seed"], K, case["D"], f))
    assert float(rows_KD.sum()) == pytest.approx(case["sum"], abs=1e-9), "this is not the stack that they were given"
    result: list[float] = OURS[name](K, f)(rows_KD.to(dtype), torch.full((K,), 1 / K, dtype=dtype)).tolist()
    return result


def test_nothing_that_they_computed_is_left_out() -> None:
    assert len(CASES) == 20
    assert all(case["results"].keys() == OURS.keys() for case in CASES)


@pytest.mark.parametrize("name", OURS)
def test_the_same_result_in_float64(name: str) -> None:
    for case in CASES:
        assert ours(case, name) == pytest.approx(case["results"][name], rel=1e-7, abs=1e-7), case


@pytest.mark.parametrize("name", OURS)
def test_the_same_result_in_float32(name: str) -> None:
    for case in CASES:
        assert ours(case, name, torch.float32) == pytest.approx(case["results"][name], rel=1e-4, abs=1e-5), case


def test_one_neighbour_more_can_choose_another_row() -> None:
    chosen = [(case["results"]["byzfl Krum"], case["results"]["flower krum"]) for case in CASES]
    assert any(theirs != papers for theirs, papers in chosen)
    assert any(theirs == papers for theirs, papers in chosen)
