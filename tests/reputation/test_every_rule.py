"""What holds for every reputation rule: a new one is tested by being in REPUTATIONS."""

from __future__ import annotations

import pickle

import pytest
import torch

from fedvote.core import State
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key
from fedvote.reputation import REPUTATIONS, Ballots, Reputation, Verdict
from tests.toy import assert_same, copied

N, K, D = 6, 4, 50
COHORT = (0, 2, 3, 5)


@pytest.fixture(params=list(REPUTATIONS.values()), ids=list(REPUTATIONS))
def rule(request: pytest.FixtureRequest) -> Reputation:
    made: Reputation = request.param()
    return made


@pytest.fixture(params=[BINARY, TERNARY], ids=["binary", "ternary"])
def ballots(request: pytest.FixtureRequest) -> Ballots:
    alphabet: Alphabet = request.param
    generator = Key(0).torch("ballots")
    drawn = torch.randint(0, len(alphabet), (K, D), generator=generator)
    soft_D = torch.rand(D, generator=generator) * 2 - 1
    return Ballots(torch.tensor(alphabet, dtype=torch.int8)[drawn], torch.tensor(COHORT), soft_D, alphabet)


def judged(rule: Reputation, ballots: Ballots, rounds: int = 3) -> tuple[Verdict, State]:
    """The last verdict, and the memory it was made from."""
    memory = rule.init(N)
    for round in range(1, rounds):
        memory = rule.judge(memory, ballots, Key(0, round)).memory
    return rule.judge(memory, ballots, Key(0, rounds)), memory


def test_a_rule_gives_every_ballot_a_weight_of_at_least_nothing(rule: Reputation, ballots: Ballots) -> None:
    verdict, _ = judged(rule, ballots)
    for weights in (verdict.soft_K, verdict.hard_K):
        assert weights.shape == (K,) and weights.isfinite().all()
        assert (weights >= 0).all() and weights.sum() > 0


def test_a_rule_changes_no_argument_and_repeats(rule: Reputation, ballots: Ballots) -> None:
    verdict, memory = judged(rule, ballots)
    before, votes = copied(memory), ballots.votes_KD.clone()
    again = rule.judge(memory, ballots, Key(0, 3))
    assert_same(memory, before)
    assert torch.equal(ballots.votes_KD, votes)
    assert torch.equal(verdict.soft_K, again.soft_K) and torch.equal(verdict.hard_K, again.hard_K)
    assert_same(verdict.memory, again.memory)


def test_memory_keeps_its_form_and_has_all_clients_in_front(rule: Reputation, ballots: Ballots) -> None:
    verdict, _ = judged(rule, ballots)
    first = rule.init(N)
    assert {n: (v.shape, v.dtype) for n, v in verdict.memory.items()} == {
        n: (v.shape, v.dtype) for n, v in first.items()
    }
    assert all(len(value) == N for value in first.values())


def test_those_who_did_not_vote_are_remembered_as_they_were(rule: Reputation, ballots: Ballots) -> None:
    verdict, memory = judged(rule, ballots)
    for name, value in verdict.memory.items():
        assert torch.equal(value[[1, 4]], memory[name][[1, 4]]), name


def test_clients_weigh_the_same_in_whatever_order_they_come(rule: Reputation, ballots: Ballots) -> None:
    order = [2, 0, 3, 1]
    turned = Ballots(ballots.votes_KD[order], ballots.clients_K[order], ballots.soft_D, ballots.alphabet)
    verdict, _ = judged(rule, ballots)
    shuffled, _ = judged(rule, turned)
    torch.testing.assert_close(shuffled.soft_K, verdict.soft_K[order])
    torch.testing.assert_close(shuffled.hard_K, verdict.hard_K[order])
    assert_same(shuffled.memory, verdict.memory)


def test_rules_print_compare_and_pickle(rule: Reputation) -> None:
    assert pickle.loads(pickle.dumps(rule)) == rule == type(rule)()
    assert str(rule).startswith(type(rule).__name__)
