"""Option II, the rule by itself: weights in proportion to what was known before the round."""

from __future__ import annotations

import re

import pytest
import torch

from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, TERNARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Proportional, Verdict

VOTES = torch.tensor([[1, 1, 1], [1, 1, -1], [1, -1, -1]], dtype=torch.int8)


def judge(rule: Proportional, nu: list[float], votes: torch.Tensor = VOTES) -> Verdict:
    ballots = Ballots(votes, torch.tensor([0, 2, 3]), torch.zeros(3), BINARY if (votes != 0).all() else TERNARY)
    return rule.judge({"reputation": torch.tensor(nu)}, ballots, Key(0, 1))


def test_clients_start_as_credible_as_a_coin() -> None:
    assert Proportional().init(3)["reputation"].tolist() == [0.5, 0.5, 0.5]
    assert Proportional(start=0.8).init(2)["reputation"].tolist() == pytest.approx([0.8, 0.8])


def test_weights_are_the_reputations_before_the_round_over_the_cohort() -> None:
    verdict = judge(Proportional(), [0.2, 0.9, 0.3, 0.5])
    assert verdict.soft_K.tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert verdict.hard_K.tolist() == [1, 1, 1]


def test_credibility_is_the_share_of_votes_with_the_plurality() -> None:
    # the plurality is + + -: CR = 2/3, 1, 2/3; client 1 did not vote
    verdict = judge(Proportional(beta=0.5), [0.2, 0.9, 0.3, 0.5])
    assert verdict.memory["reputation"].tolist() == pytest.approx([0.1 + 1 / 3, 0.9, 0.65, 0.25 + 1 / 3])


@pytest.mark.parametrize("beta", [0.25, 0.9])
def test_beta_is_what_stays_of_the_old_reputation(beta: float) -> None:
    verdict = judge(Proportional(beta=beta), [0.2, 0.9, 0.3, 0.5])
    assert float(verdict.memory["reputation"][2]) == pytest.approx(beta * 0.3 + (1 - beta) * 1)


def test_ternary_votes_agree_only_where_they_are_equal() -> None:
    votes = torch.tensor([[0, 0, 1], [0, 1, 1], [-1, 0, 1]], dtype=torch.int8)  # the plurality is 0 0 +
    verdict = judge(Proportional(), [0.5, 0.5, 0.5, 0.5], votes)
    assert verdict.memory["reputation"].tolist() == pytest.approx([0.75, 0.5, 0.25 + 1 / 3, 0.25 + 1 / 3])


def test_who_always_votes_against_the_others_loses_all_weight() -> None:
    rule = Proportional()
    memory = rule.init(4)
    votes = torch.tensor([[1, 1, 1], [1, 1, 1], [-1, -1, -1]], dtype=torch.int8)
    for round in range(1, 12):
        verdict = rule.judge(memory, Ballots(votes, torch.tensor([0, 1, 3]), torch.zeros(3), BINARY), Key(0, round))
        memory = verdict.memory
    assert float(verdict.soft_K[2]) < 0.001
    assert float(verdict.soft_K.sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beta": -0.1}, "beta is -0.1, expected"),
        ({"beta": 0.0}, "beta is 0.0, expected"),
        ({"beta": 1.0}, "beta is 1.0, expected"),
        ({"beta": float("nan")}, "beta is nan, expected"),
        ({"start": 0.0}, "start is 0.0, expected"),
        ({"start": 1.5}, "start is 1.5, expected"),
    ],
    ids=str,
)
def test_coefficients_that_would_leave_nobody_a_weight_are_refused(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Proportional(**options)
