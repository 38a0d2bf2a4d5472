"""The rule `camps`: the honest keep their votes, attackers short of half have none from the first round on."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, TERNARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps
from tests.reputation.cast_ballots import (
    ATTACKS,
    SEEDS,
    SOFT,
    Attack,
    N,
    attacked,
    ballots,
    cast,
    coins,
    judged,
    weights_without,
)
from tests.reputation.honest_rounds import CLIENTS, MIXTURES, lost_votes
from tests.toy import assert_same


@SEEDS
@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5, 8, 11, 16, 31])
def test_honest_clients_with_different_data_all_keep_their_votes(clients: int, seed: int) -> None:
    memory = Camps().init(N)
    for round in range(1, 6):
        verdict = judged(memory, cast(range(clients), round, seed=seed), range(clients), round, seed)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(clients))
        assert torch.equal(verdict.hard_K, torch.ones(clients))


@pytest.mark.parametrize("kind", MIXTURES)
def test_honest_clients_of_any_mixture_lose_less_than_a_vote_in_a_hundred(kind: str) -> None:
    """By layer and not, binary and ternary, early and late, with small steps and large."""
    lost = sum(lost_votes(kind, clients, seed) for clients in CLIENTS for seed in (1000, 1001))
    assert lost < 0.01 * 2 * sum(CLIENTS)


@SEEDS
@pytest.mark.parametrize("hostile", [1, 5, 10, 15])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attackers_short_of_half_have_no_vote_from_the_first_round_on(attack: Attack, hostile: int, seed: int) -> None:
    if hostile == 1 and attack is ATTACKS["one common ballot"]:
        return  # one honest ballot
    rows = range(3, 3 + 2 * hostile, 2) if hostile < 15 else range(1, N, 2)
    memory = Camps().init(N)
    for round in (1, 2):
        verdict = judged(memory, attacked(attack, rows, round, seed), range(N), round, seed)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, weights_without(rows))
        assert torch.equal(verdict.hard_K, weights_without(rows))


@SEEDS
@pytest.mark.parametrize("hostile", [5, 10, 15])
def test_clients_that_learn_from_wrong_labels_have_no_vote(hostile: int, seed: int) -> None:
    """Their ballots are as close to the soft vote, and to each other, as honest ones are."""
    rows = range(2 * hostile)[::2]
    votes_KD = attacked(None, rows, seed=seed)
    assert torch.equal(judged(Camps().init(N), votes_KD, range(N), seed=seed).soft_K, weights_without(rows))


@SEEDS
@pytest.mark.parametrize("hostile", [5, 10, 15])
@pytest.mark.parametrize("attack", ["inverse", "random", "wrong labels"])
def test_ternary_votes_fall_into_camps_too(attack: str, hostile: int, seed: int) -> None:
    rows = list(range(N))[-hostile:]
    votes_KD = cast(range(N), 1, TERNARY, seed=seed)
    wrong = {
        "inverse": -votes_KD[rows],
        "random": coins(votes_KD[rows].shape, 1, TERNARY),
        "wrong labels": cast(rows, 1, TERNARY, flipped=True, seed=seed),
    }
    votes_KD[rows] = wrong[attack]
    verdict = Camps().judge(Camps().init(N), ballots(votes_KD, range(N), TERNARY), Key(seed, 1))
    assert torch.equal(verdict.soft_K, weights_without(rows))


@pytest.mark.parametrize(("clients", "hostile"), [(4, 1), (5, 2), (7, 3), (11, 5), (16, 7)])
def test_a_few_clients_are_enough_against_inverted_votes(clients: int, hostile: int) -> None:
    votes_KD = cast(range(clients), 1)
    votes_KD[:hostile] *= -1
    verdict = judged(Camps().init(clients), votes_KD, range(clients))
    assert torch.equal(verdict.soft_K, weights_without(range(hostile), clients))


@pytest.mark.parametrize(("clients", "hostile"), [(2, 1), (3, 1), (4, 2), (10, 5), (30, 15)])
def test_without_a_majority_of_three_or_more_everybody_votes(clients: int, hostile: int) -> None:
    votes_KD = cast(range(clients), 1)
    votes_KD[:hostile] *= -1
    assert torch.equal(judged(Camps().init(clients), votes_KD, range(clients)).soft_K, torch.ones(clients))


@pytest.mark.parametrize("votes", [torch.ones(6, 40), torch.zeros(6, 40), torch.eye(6).repeat(1, 7) * 2 - 1], ids=str)
def test_ballots_between_which_there_is_nothing_to_choose_all_count(votes: Tensor) -> None:
    verdict = judged(Camps().init(6), votes.to(torch.int8), range(6))
    assert torch.equal(verdict.soft_K, torch.ones(6))


def test_the_order_of_clients_does_not_matter() -> None:
    votes_KD = attacked(None, range(10))
    order = torch.randperm(N, generator=Key(7).torch("order"))
    verdict = judged(Camps().init(N), votes_KD, range(N))
    turned = Camps().judge(Camps().init(N), Ballots(votes_KD[order], order, SOFT, BINARY), Key(0, 1))
    assert torch.equal(turned.soft_K, verdict.soft_K[order])
    assert_same(turned.memory, verdict.memory)


def test_a_rule_is_told_of_votes_names_and_layers_and_of_nothing_else() -> None:
    assert [field.name for field in fields(Ballots)] == ["votes", "clients_K", "soft_D", "alphabet", "layers"]


@SEEDS
@pytest.mark.parametrize(("clients", "hostile"), [(7, 3), (8, 3), (11, 5)])
def test_a_few_clients_are_enough_against_wrong_labels(clients: int, hostile: int, seed: int) -> None:
    memory = Camps().init(clients)
    for round in range(1, 5):
        votes_KD = cast(range(clients), round, seed=seed)
        votes_KD[:hostile] = cast(range(hostile), round, flipped=True, seed=seed)
        verdict = judged(memory, votes_KD, range(clients), round, seed)
        memory = verdict.memory
        assert bool((verdict.soft_K[hostile:] == 1).all())
    assert not verdict.soft_K[:hostile].any()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beta": 0.0}, "beta is 0.0, expected"),
        ({"beta": 1.0}, "beta is 1.0, expected"),
        ({"beta": float("nan")}, "beta is nan, expected"),
        ({"gap": 0.0}, "gap is 0.0, expected"),
        ({"gap": float("inf")}, "gap is inf, expected"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Camps(**options)
