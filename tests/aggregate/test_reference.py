"""Every rule against its formula, written in loops over floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from fedvote.aggregate import Aggregate, CentredClipping, GeometricMedian, Krum, Mean, Median, TrimmedMean

Rows = Sequence[Sequence[float]]
Reference = Callable[[Rows, Sequence[float]], list[float]]


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def mean(rows: Rows, weights: Sequence[float]) -> list[float]:
    return [sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*rows, strict=True)]


def trimmed(trim: int) -> Reference:
    def reference(rows: Rows, weights: Sequence[float]) -> list[float]:
        kept = [sorted(column)[trim : len(rows) - trim] for column in zip(*rows, strict=True)]
        return [sum(column) / len(column) for column in kept]

    return reference


def median(rows: Rows, weights: Sequence[float]) -> list[float]:
    return trimmed((len(rows) - 1) // 2)(rows, weights)


def krum(f: int, m: int) -> Reference:
    def reference(rows: Rows, weights: Sequence[float]) -> list[float]:
        K, scores = len(rows), []
        for i in range(K):
            others = sorted(distance(rows[i], rows[j]) ** 2 for j in range(K) if j != i)
            scores.append(sum(others[: K - f - 2]))
        best = sorted(range(K), key=lambda i: scores[i])[:m]
        return mean([rows[i] for i in best], [1 / m] * m)

    return reference


def geometric_median(rows: Rows, weights: Sequence[float]) -> list[float]:
    point = mean(rows, weights)
    for _ in range(3000):
        pull = [w / max(1e-6, distance(row, point)) for w, row in zip(weights, rows, strict=True)]
        point = mean(rows, [b / sum(pull) for b in pull])
    return point


def centred_clipping(radius: float, iterations: int) -> Reference:
    def reference(rows: Rows, weights: Sequence[float]) -> list[float]:
        point = [0.0] * len(rows[0])
        for _ in range(iterations):
            last = list(point)
            for w, row in zip(weights, rows, strict=True):
                cut = min(1, radius / distance(row, last))
                for d in range(len(point)):
                    point[d] += w * cut * (row[d] - last[d])
        return point

    return reference


PAIRS: dict[str, tuple[Aggregate, Reference]] = {
    "mean": (Mean(), mean),
    "median": (Median(), median),
    "trimmed mean": (TrimmedMean(2), trimmed(2)),
    "krum": (Krum(1), krum(1, 1)),
    "multi-krum": (Krum(1, select=3), krum(1, 3)),
    "geometric median": (GeometricMedian(iterations=3000, tolerance=0), geometric_median),
    "centred clipping": (CentredClipping(1.5, iterations=4), centred_clipping(1.5, 4)),
}
WEIGHTED = ("mean", "geometric median", "centred clipping")


@pytest.mark.parametrize(("K", "D"), [(5, 2), (6, 3), (9, 4)])
@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_is_its_formula(name: str, K: int, D: int) -> None:
    rule, reference = PAIRS[name]
    for seed in range(3):
        rng = np.random.default_rng([K, D, seed])
        rows = rng.normal(0.5, 2, (K, D))
        weights = rng.uniform(0.5, 2, K) if name in WEIGHTED else np.ones(K)
        weights /= weights.sum()
        expected = reference(rows.tolist(), weights.tolist())
        assert rule(torch.from_numpy(rows), torch.from_numpy(weights)).tolist() == pytest.approx(expected, abs=1e-6)


def test_no_point_nearby_has_a_smaller_sum_of_distances() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(0, 1, (8, 3)), rng.dirichlet(np.full(8, 3.0))
    point = GeometricMedian()(torch.from_numpy(rows), torch.from_numpy(weights)).numpy()

    def total(at: np.ndarray) -> float:
        return float(weights @ np.linalg.norm(rows - at, axis=1))

    for _ in range(50):
        assert total(point + rng.normal(0, 0.01, 3)) > total(point)
