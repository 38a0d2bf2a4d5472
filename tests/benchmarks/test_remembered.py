"""Turns that are remembered: nothing changes but how often clients train."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fedvote import FedVote
from fedvote.attacks import Attack, Inverse, LabelFlip, Partial
from fedvote.engines.simulate import Simulation
from fedvote.reputation import Proportional
from tests import toy

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def remembered() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("remembered")


def made(method: FedVote, attack: Attack, epochs: float = 0.0, oracle: bool = False) -> Simulation:
    return Simulation.of(
        toy.module(), toy.dataset(), method, clients=5, rounds=3, steps=2, batch=8, epochs=epochs, hostile=2,
        attack=attack, oracle=oracle,
    )  # fmt: skip


def ends(simulation: Simulation) -> dict[str, torch.Tensor]:
    *_, last = simulation.run()
    return last.state


@pytest.mark.parametrize("attack", [Inverse(), LabelFlip(), Partial(0.3)])
@pytest.mark.parametrize("epochs", [0.0, 0.5])
@pytest.mark.parametrize("method", [FedVote(), FedVote(votes="ternary", reputation=Proportional())])
def test_rounds_end_the_same(remembered: Any, attack: Attack, epochs: float, method: FedVote) -> None:
    turns: dict[bytes, Any] = {}
    plain = made(method, attack, epochs)
    shared = replace(plain, method=remembered.Remembered.like(method, turns))
    expected = ends(plain)
    for again in (shared, shared):
        found = ends(again)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert len(turns) == 5 * 3  # the second time, everybody's turn in every round was known


def test_only_what_differs_is_trained(remembered: Any) -> None:
    """In round 1 all runs begin alike: honest clients, and attackers with true labels, do the same in each of them."""
    turns: dict[bytes, Any] = {}
    known = []
    for attack, oracle in ((Inverse(), True), (Inverse(), False), (Partial(0.5), False), (LabelFlip(), False)):
        one = made(FedVote(), attack, oracle=oracle)
        ends(replace(one, method=remembered.Remembered.like(FedVote(), turns), rounds=1))
        known.append(len(turns))
    assert known == [3, 3 + 2, 5, 5 + 2]  # an oracle trains the honest alone


def test_another_seed_has_turns_of_its_own(remembered: Any) -> None:
    turns: dict[bytes, Any] = {}
    for seed in (0, 1):
        one = replace(made(FedVote(), Inverse()), method=remembered.Remembered.like(FedVote(), turns), rounds=1)
        ends(replace(one, seed=seed))
    assert len(turns) == 2 * 5
