"""Clients that the operator trusts decide which camp of the rule `camps` is the majority."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from fedvote.attacks import Inverse
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.methods import FedVote
from fedvote.randomness import Key
from fedvote.reputation import Camps
from tests.reputation.cast_ballots import ATTACKS, SEEDS, Attack, N, attacked, ballots, cast, judged, weights_without
from tests.toy import dataset, module

TRUSTED = (4, 11, 30)
RULE = Camps(trusted=TRUSTED)


def others(hostile: int) -> list[int]:
    """So many clients that nobody trusts."""
    return [client for client in range(N) if client not in TRUSTED][:hostile]


@SEEDS
@pytest.mark.parametrize("hostile", [16, 25])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_beside_trusted_clients_attackers_have_no_vote_even_if_they_are_most(
    attack: Attack, hostile: int, seed: int
) -> None:
    memory = RULE.init(N)
    for round in (1, 2):
        votes_KD = attacked(attack, others(hostile), round, seed)
        verdict = RULE.judge(memory, ballots(votes_KD, range(N)), Key(seed, round))
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, weights_without(others(hostile)))


@SEEDS
@pytest.mark.parametrize("hostile", [5, 20, 25])
def test_beside_trusted_clients_wrong_labels_of_most_clients_do_not_count(hostile: int, seed: int) -> None:
    votes_KD = attacked(None, others(hostile), seed=seed)
    alone = judged(Camps().init(N), votes_KD, range(N), seed=seed)
    verdict = RULE.judge(RULE.init(N), ballots(votes_KD, range(N)), Key(seed, 1))
    assert torch.equal(verdict.soft_K, weights_without(others(hostile)))
    assert torch.equal(verdict.soft_K, alone.soft_K) == (hostile < N / 2)


@SEEDS
def test_trusted_clients_change_nothing_where_everybody_is_honest(seed: int) -> None:
    memory = RULE.init(N)
    for round in range(1, 6):
        verdict = RULE.judge(memory, ballots(cast(range(N), round, seed=seed), range(N)), Key(seed, round))
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(N))


def test_trusted_clients_outside_of_a_round_count_for_those_who_agree_with_them() -> None:
    """Wrong labels by most clients of a round, after rounds in which all have met."""
    hostile, memory = others(20), RULE.init(N)
    for round in (1, 2):
        memory = RULE.judge(memory, ballots(attacked(None, hostile, round), range(N)), Key(0, round)).memory
    cohort = [client for client in range(N) if client not in TRUSTED]
    verdict = RULE.judge(memory, ballots(attacked(None, hostile, 3)[cohort], cohort), Key(0, 3))
    assert [client for client, weight in zip(cohort, verdict.soft_K.tolist(), strict=True) if not weight] == hostile


@SEEDS
def test_a_trusted_client_counts_whatever_it_sends(seed: int) -> None:
    """One of three forges; and one of three has labels of its own, with most of the others."""
    forged = cast(range(N), 1, seed=seed)
    forged[TRUSTED[0]] *= -1
    verdict = RULE.judge(RULE.init(N), ballots(forged, range(N)), Key(seed, 1))
    assert torch.equal(verdict.soft_K, torch.ones(N))
    apart = attacked(None, [*others(15), TRUSTED[0]], seed=seed)
    verdict = RULE.judge(RULE.init(N), ballots(apart, range(N)), Key(seed, 1))
    assert torch.equal(verdict.soft_K, weights_without(others(15)))


def test_the_work_of_absent_trusted_clients_tells_who_forges_in_a_round_without_them() -> None:
    hostile, memory = others(20), RULE.init(N)
    memory = RULE.judge(memory, ballots(cast(range(N), 1), range(N)), Key(0, 1)).memory
    cohort = [client for client in range(N) if client not in TRUSTED]
    votes_KD = attacked(ATTACKS["inverse"], hostile, 2)[cohort]
    verdict = RULE.judge(memory, ballots(votes_KD, cohort), Key(0, 2))
    assert [client for client, weight in zip(cohort, verdict.soft_K.tolist(), strict=True) if not weight] == hostile


@pytest.mark.parametrize("hostile", [1, 3, 4])
def test_a_simulation_draws_no_attackers_among_trusted_clients(hostile: int) -> None:
    method = FedVote(reputation=Camps(trusted=(1, 3, 4)))
    for seed in range(5):
        run = simulate(
            module(), dataset(), method, seed=seed, clients=8, batch=8, attack=Inverse(), hostile=hostile, device="cpu"
        )
        assert len(run.federation.hostile) == hostile and not {1, 3, 4} & set(run.federation.hostile)


def test_more_attackers_than_clients_that_nobody_trusts_are_refused() -> None:
    method = FedVote(reputation=Camps(trusted=(1, 3, 4)))
    said = "hostile is 6, expected 0 to 5: 3 of 8 clients are trusted"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        simulate(module(), dataset(), method, clients=8, batch=8, attack=Inverse(), hostile=6, device="cpu")


@pytest.mark.parametrize("trusted", [(1, 1), (-1,), (0, 2, -3)])
def test_trusted_clients_are_different_numbers(trusted: Any) -> None:
    said = f"trusted is {list(trusted)}, expected a list of different client numbers, such as [0, 1]"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        Camps(trusted=trusted)
    assert hash(Camps(trusted=[2, 1])) == hash(Camps(trusted=(2, 1)))  # type: ignore[arg-type]


@pytest.mark.parametrize("trusted", [0, None, ("0",), (0.5,), (True,), {1}])
def test_trusted_clients_are_a_list_of_whole_numbers(trusted: Any) -> None:
    with pytest.raises(
        ConfigError, match=f"^{re.escape(f'trusted is {trusted!r}, expected a list of whole numbers')}$"
    ):
        Camps(trusted=trusted)


def test_a_trusted_client_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=re.escape("trusted is [2, 8], expected numbers of clients, 0 to 7")):
        Camps(trusted=(2, 8)).init(8)
