"""Lemma 1, Theorem 1 and Lemmas 7 to 9 as experiments: their sides are computed as the paper writes them, and hold."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt, tanh
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from fedvote.studies.experiments import Asked, one_vote
from fedvote.studies.experiments.convergence import CASES, THEOREM_1
from fedvote.studies.experiments.known_problem import Moments, Problem, lemmas, moments, theorem
from fedvote.studies.experiments.one_vote import LEMMA_1, bound, exact

WEIGHTS = 10_000
TINY = Problem(clients=1, weights=1, noise=0.0, steps=1)


def test_lemma_1_one_vote_is_wrong_as_often_as_is_probable_and_less_than_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(one_vote, "WEIGHTS", WEIGHTS)
    (found,) = LEMMA_1.measure(Asked(seeds=1, only=("s = 0.3",)), Path())
    assert [row["clients"] for row in found.rows][:3] == [1, 3, 5]
    for row in found.rows:
        assert row["measured"] == pytest.approx(row["exact"], abs=5 * sqrt(row["exact"] / WEIGHTS))
        assert row["exact"] < row["bound"]


def test_lemma_1_three_voters_by_hand() -> None:
    # two wrong of (0.1, 0.2, 0.3), or all three
    assert exact([0.1, 0.2, 0.3]) == pytest.approx(0.1 * 0.2 * 0.7 + 0.1 * 0.3 * 0.8 + 0.2 * 0.3 * 0.9 + 0.006)
    assert exact([0.25, 0.25]) == pytest.approx(1 - 0.75**2)  # the proof counts a tie as an error
    assert bound(0.5, 7) == 1.0


@pytest.mark.parametrize("name", CASES)
def test_the_learning_rate_is_the_largest_that_the_proof_allows(name: str) -> None:
    problem = CASES[name]
    L, tau, eta, c1, c2 = 1.0, problem.steps, problem.rate, problem.c1(problem.rate), problem.c2
    assert (L * eta) ** 2 * tau * (tau - 1) / 2 + L * eta * tau / c1**2 == pytest.approx(1 / c2**2)
    assert problem.allows(0.99 * eta) and not problem.allows(1.01 * eta)


@pytest.mark.parametrize("problem", CASES.values(), ids=CASES)
def test_no_client_leaves_the_range_of_the_constants(problem: Problem) -> None:
    """All push outwards, from the edge of the box, for all steps: the slope stays above c1."""
    h = torch.atanh(torch.tensor(1 - 2 * problem.p_min, dtype=torch.float64)) / problem.a
    for _ in range(problem.steps):
        slope = problem.a * (1 - tanh(problem.a * float(h)) ** 2)
        h = h + problem.rate * slope * (1.6 * problem.smoothness + problem.noise)
    assert problem.c1(problem.rate) < problem.a * (1 - tanh(problem.a * float(h)) ** 2) < problem.c2


def test_one_step_of_one_client_by_hand() -> None:
    b = float(TINY.optimum())
    w = -0.7 if b > 0 else 0.7
    slope = 1.5 * (1 - w**2)
    after = tanh(1.5 * (torch.atanh(torch.tensor(w, dtype=torch.float64)).item() / 1.5 - TINY.rate * slope * (w - b)))
    (found,) = moments(TINY, rounds=1, runs=1, seed=0)
    assert found.gradient == pytest.approx((w - b) ** 2) and found.excess == pytest.approx((w - b) ** 2 / 2)
    assert found.local_gradients == pytest.approx((slope * (w - b)) ** 2) and found.opposed == 0
    assert found.divergence == pytest.approx((after - w) ** 2)
    assert found.descent == pytest.approx((w - b) * (w - after))
    assert found.rounding == pytest.approx(1 - after**2)
    assert found.change == pytest.approx((w - after) ** 2 + 1 - after**2)


def test_theorem_1_has_four_terms() -> None:
    problem, one = Problem(clients=2, steps=3), Moments(5.0, 7.0, 11.0, 13.0, 17.0, 0.0, 0.0, 0.0)
    eta, c1, c2 = problem.rate, problem.c1(problem.rate), 1.5
    left, right = theorem(problem, [one, one])
    assert left == pytest.approx(c1**2 * 7)
    start, rounding = 2 * 5 / (eta * 3 * 2), 2 * 17 / (eta * 3 * 2 * 2)
    noise = c2**2 * eta * (1 / 2 + c1**2 * eta * 2 / 2) * problem.gradient_variance
    assert right == pytest.approx(start + noise + rounding + 2 * (c2**2 - c1**2) / (3 * 2 * 2) * 26)


def test_lemma_8_as_printed_promises_more_where_the_normalisation_is_steep() -> None:
    some = Moments(5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0)
    for a, more in ((3.0, True), (0.5, False)):
        sides = lemmas(replace(TINY, a=a), some)
        assert (sides["Lemma 8, as printed"][0] > sides["Lemma 8"][0]) == more


def test_theorem_1_and_lemmas_7_to_9_hold_in_every_round(tmp_path: Path) -> None:
    *_, found = THEOREM_1.measure(Asked(seeds=1, rounds=25, only=("31 clients", "31 clients, a = 3")), tmp_path)
    for row in found.rows:
        assert all(0 < row[name] <= 1 for name in ("Theorem 1", "Lemma 7", "Lemma 8", "Lemma 8, as printed", "Lemma 9"))
        assert row["gradient"] < 20 < 34 < row["by round"][0][0] / row["c1"] ** 2  # and it converges
    for chart in found.page().charts:
        ElementTree.fromstring(chart.svg())
    assert "Lemma 9" in found.text() and "by round" not in found.text()
