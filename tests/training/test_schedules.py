"""Schedules: the factor of every round, typed in; and that runs follow them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import torch

import fedvote
from fedvote import FedAvg, FedVote, Simulation
from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.training.descent import descend
from fedvote.training.schedules import Constant, Cosine, Linear, Schedule, Steps
from tests.toy import batches, dataset, module, scaled


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (Constant(), [1, 1, 1, 1, 1]),
        (Constant(warm_up=3), [0.25, 0.5, 0.75, 1, 1]),
        (Linear(start=0.0, end=1.0), [0, 0.25, 0.5, 0.75, 1]),
        (Cosine(end=0.0), [1, 0.853553, 0.5, 0.146447, 0]),
        (Cosine(end=0.5), [1, 0.926777, 0.75, 0.573223, 0.5]),
        (Cosine(end=0.0, cycles=2), [1, 0.5, 1, 0.5, 0]),
        (Cosine(end=0.0, hold=0.5), [1, 1, 1, 0.5, 0]),
        (Linear(hold=0.75, start=0.0, end=1.0), [0, 0, 0, 0, 1]),
        (Steps(), [1, 1, 0.1, 0.01, 0.01]),
        (Steps(at_shares=(1.0,), by=2.0), [1, 1, 1, 1, 2]),
    ],
    ids=str,
)
def test_factors_by_round(schedule: Schedule, factors: list[float]) -> None:
    assert [schedule.at(round, 5) for round in range(1, 6)] == pytest.approx(factors, abs=1e-6)
    assert schedule.at(1, 1) == pytest.approx(factors[0], abs=1e-6), "a run of one round"


@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_a_factor_of_the_rate_is_that_rate(optimizer: str) -> None:
    network = Network(module())
    start = [rows.expand(2, -1) for rows in (network.start.voted, network.start.floats)]
    drawn = batches(scaled(), [0, 1])
    half = descend(FedAvg(0.02, optimizer), network, start, replace(drawn, rate=0.5))
    slow, fast = (descend(FedAvg(lr, optimizer), network, start, drawn) for lr in (0.01, 0.02))
    for a, b, c in zip(half, slow, fast, strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)


def run(method: Method | None = None, **knobs: Any) -> Simulation:
    whole = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cpu", "start": "seed", **knobs}
    return fedvote.simulate(module(), dataset(), method, **whole)


def level(made: Simulation) -> torch.Tensor:
    *_, last = made
    return last.state["level"]


@pytest.mark.parametrize("hold", [0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.75, 0.8])
def test_restarts_and_steps_come_in_their_round_whatever_is_held(hold: float) -> None:
    """Shares of a run are fractions: their rounding errors must not delay a restart or a step by a round."""
    held = Fraction(str(hold))
    for rounds in range(2, 60):
        for round in range(1, rounds + 1):
            done = max(Fraction(0), (Fraction(round - 1, rounds - 1) - held) / (1 - held))
            for cycles in (2, 3, 5):
                inside = done * cycles % 1 if done < 1 else 1
                falling = 0.05 + 0.95 * (1 + math.cos(math.pi * inside)) / 2
                assert Cosine(end=0.05, cycles=cycles, hold=hold).at(round, rounds) == pytest.approx(falling)
            steps = Steps(at_shares=(0.2, 0.5, 0.7), by=0.1, hold=hold)
            passed = sum(done >= share for share in (Fraction(1, 5), Fraction(1, 2), Fraction(7, 10)))
            assert steps.at(round, rounds) == pytest.approx(0.1**passed)


def test_a_run_follows_its_schedules() -> None:
    plain = level(run())
    assert torch.equal(plain, level(run(lr_schedule="constant", steps_schedule=Constant())))
    for knob in ({"lr_schedule": "cosine"}, {"steps_schedule": Linear(start=1.0, end=0.25)}):
        assert not torch.equal(plain, level(run(**knob))), knob
    assert torch.equal(level(run(steps_schedule=Steps(at_shares=(0.0,), by=0.5))), level(run(steps=2)))
    assert torch.equal(level(run(lr_schedule=Steps(at_shares=(0.0,), by=0.5))), level(run(FedVote(lr=0.015))))


def test_smoothed_labels_keep_outputs_smaller() -> None:
    plain, smooth = (run(FedAvg(0.05), rounds=6, label_smoothing=share) for share in (0.0, 0.3))
    x = dataset().test.take(slice(None))[0]
    sharp, soft = (made.deployed([*made][-1])(x).softmax(1).amax(1).mean() for made in (plain, smooth))
    assert soft < sharp - 0.05


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_the_sign_share_follows_its_schedule(votes: Any) -> None:
    plain, half = (level(run(FedVote(votes=votes, sign_share=share))) for share in (0.0, 0.5))
    rising = level(run(FedVote(votes=votes, sign_share=0.5, sign_schedule=Linear(start=0.0, end=1.0))))
    none = level(run(FedVote(votes=votes, sign_share=0.5, sign_schedule=Linear(start=0.0, end=0.0))))
    assert torch.equal(plain, none), "a share of 0 is the paper's method"
    assert not torch.equal(plain, half) and not torch.equal(half, rising) and not torch.equal(plain, rising)


@pytest.mark.parametrize(
    "knobs",
    [{"lr_schedule": "cosin"}, {"lr_schedule": 3}, {"label_smoothing": 1.0}, {"label_smoothing": -0.1}],
    ids=str,
)
def test_what_is_no_schedule_is_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(knobs))):
        run(**knobs)
    with pytest.raises(ConfigError, match=r"sign_share is 1\.5"):
        FedVote(sign_share=1.5)


@pytest.mark.parametrize("factor", [-3.0, float("nan"), float("inf")])
def test_a_factor_below_zero_or_not_finite_is_refused_before_the_run(factor: float) -> None:
    """A rate below zero would end the run in the round that reaches it."""
    for kind, name in ((Cosine, "end"), (Linear, "end"), (Linear, "start"), (Steps, "by")):
        given: dict[str, Any] = {name: factor}
        with pytest.raises(ConfigError, match=f"{name}.* is {factor}|{name} {factor}"):
            kind(**given)
    assert Cosine(end=0).at(5, 5) == Steps(by=0).at(5, 5) == 0
