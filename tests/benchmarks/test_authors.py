"""Reputation as the paper's authors ran it: an oracle, which knows whose votes make the plurality."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Cut, Reputation, Verdict

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
K, D, HOSTILE = 7, 4000, (1, 4, 6)


@pytest.fixture(scope="module")
def authors() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("authors")


def ballots(often: float = 0.8) -> Ballots:
    """Honest clients agree in so many votes; hostile ones send minus what the others agree on."""
    lots = torch.Generator().manual_seed(0)
    truth_D = torch.randint(0, 2, (D,), generator=lots) * 2 - 1
    votes_KD = torch.where(torch.rand((K, D), generator=lots) < often, truth_D, -truth_D)
    votes_KD[list(HOSTILE)] = -truth_D
    return Ballots(votes_KD.to(torch.int8), torch.arange(K), torch.zeros(D), BINARY)


def judged(rule: Reputation, often: float = 0.8) -> Verdict:
    return rule.judge(rule.init(K), ballots(often), Key(0, 1))


def plurality_of(rows: list[int]) -> Tensor:
    return ballots().votes_KD[rows].long().sum(0).sign()


def test_clients_are_judged_by_the_plurality_of_the_honest_from_the_first_round_on(authors: Any) -> None:
    verdict = judged(authors.OracleCut(hostile=HOSTILE))
    assert set(verdict.soft_K.nonzero().flatten().tolist()) == set(range(K)) - set(HOSTILE)
    winner_D = plurality_of([0, 2, 3, 5])
    tied = float((winner_D == 0).float().mean())  # ties are broken at random
    for ballot, reputation in zip(ballots().votes_KD, verdict.memory["reputation"], strict=True):
        agreed = float((ballot == winner_D).float().mean())
        assert (1 + agreed) / 2 <= reputation <= (1 + agreed + tied) / 2


def test_a_server_that_is_not_told_is_led_astray_by_fewer_than_half(authors: Any) -> None:
    """Three who agree with each other make the plurality of seven, and so are the only credible ones."""
    assert judged(Cut(), often=0.7).soft_K.nonzero().flatten().tolist() == list(HOSTILE)
    assert judged(authors.OracleCut(hostile=HOSTILE), often=0.7).soft_K[list(HOSTILE)].tolist() == [0, 0, 0]
