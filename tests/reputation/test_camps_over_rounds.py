"""What `camps` remembers: sleepers, penitents, cohorts of attackers, opponents who stay out."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Inverse
from fedvote.engines.simulate import simulate
from fedvote.methods import FedVote
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Camps
from fedvote.reputation.camps import FORGED, OPPOSED
from tests.reputation.cast_ballots import (
    ATTACKS,
    OTHER,
    SEEDS,
    SOFT,
    N,
    attacked,
    ballots,
    cast,
    judged,
    mixtures,
)
from tests.toy import assert_same, dataset, module


def honest(others: Tensor, own: Tensor, round: int) -> Tensor:
    return own


@SEEDS
def test_a_sleeper_loses_its_vote_when_it_wakes_and_earns_it_back_when_it_repents(seed: int) -> None:
    rows, memory, weight = range(10), Camps().init(N), []
    for round in range(1, 16):
        votes_KD = attacked(ATTACKS["inverse"] if 4 <= round < 9 else honest, rows, round, seed)
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
        weight.append(verdict.soft_K)
        assert torch.equal(verdict.soft_K[10:], torch.ones(21))
    assert all((w[:10] == 1).all() for w in weight[:3])
    assert all((w[:10] == 0).all() for w in weight[3:8])
    # 1 - 0.8^5 of its reputation is gone, and comes back by a fifth of what is missing every round
    missing = 1 - 0.8**5
    for since, w in enumerate(weight[8:], 1):
        torch.testing.assert_close(w[:10], torch.full((10,), 1 - missing * 0.8**since))


@SEEDS
def test_clients_that_turn_to_wrong_labels_after_many_honest_rounds_are_left_out_at_once(seed: int) -> None:
    """What they agreed on in all rounds before does not hide them: the round alone is enough."""
    rows, memory = range(12), Camps().init(N)
    for round in range(1, 8):
        verdict = judged(memory, attacked(honest, rows, round, seed), range(N), round, seed)
        memory = verdict.memory
        assert bool((verdict.soft_K == 1).all())
    turned = attacked(None, rows, 8, seed)
    assert judged(memory, turned, range(N), 8, seed).soft_K.tolist() == [0] * 12 + [1] * 19
    verdict = Camps(opponents=False).judge(memory, ballots(turned, range(N)), Key(seed, 8))
    assert bool((verdict.soft_K == 1).all())


def test_reputation_is_the_majority_in_a_cohort_of_attackers() -> None:
    """20 honest and 11 hostile clients; once known, 7 of them are no majority against 4 honest ones."""
    hostile, memory = range(20, N), Camps().init(N)
    for round in range(1, 6):
        memory = judged(memory, attacked(ATTACKS["inverse"], hostile, round), range(N), round).memory
    cohort = [0, 5, 11, 17, *range(20, 27)]
    votes_KD = attacked(ATTACKS["inverse"], hostile, 6)[cohort]
    assert judged(memory, votes_KD, cohort, 6).soft_K.tolist() == [1] * 4 + [0] * 7
    assert judged(Camps().init(N), votes_KD, cohort, 6).soft_K[4:].tolist() == [1] * 7, "nobody is known yet"


def test_only_the_reputations_of_a_cohort_change() -> None:
    cohort = [2, 3, 5, 8, 13, 21]
    votes_KD = cast(cohort, 1)
    votes_KD[1] *= -1
    memory = judged(Camps().init(N), votes_KD, cohort).memory
    torch.testing.assert_close(memory["reputation"], torch.ones(N).index_fill(0, torch.tensor([3]), 0.8))
    assert (memory["work"] > 0).all(1).nonzero()[:, 0].tolist() == [2, 5, 8, 13, 21]


@SEEDS
def test_opponents_stay_out_while_nobody_undoes_their_work_and_come_back_when_they_repent(seed: int) -> None:
    """From round 3 on they agree with each other, and neither agree nor disagree with the others."""
    rows, memory, counted = range(10), Camps().init(N), []
    for round in range(1, 11):
        votes_KD = attacked(None if round < 3 else honest, rows, round, seed)
        if 3 <= round < 6:
            keys = [Key(seed, round, client) for client in rows]
            moved_KD = SOFT + mixtures(N, seed)[list(rows)] @ OTHER + OTHER.mean(0)
            votes_KD[list(rows)] = round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, keys)
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
        counted.append(int((verdict.soft_K[:10] > 0).sum()))
    assert counted[1:5] == [0] * 4 and counted[-1] == 10


def test_the_reasons_tell_forgers_from_opponents_in_every_round() -> None:
    """Ten clients oppose the others for many rounds, then invert their votes."""
    rows, rule, memory = range(10), Camps(), Camps().init(N)
    for round in range(1, 9):
        before, forge = memory, round > 5
        verdict = judged(memory, attacked(ATTACKS["inverse"] if forge else None, rows, round), range(N), round)
        memory, out = verdict.memory, (verdict.soft_K == 0).nonzero()[:, 0].tolist()
        assert rule.reasons(before, memory, out) == dict.fromkeys(out, FORGED if forge else OPPOSED)
        assert round < 3 or out == list(rows)


def test_an_opponent_for_very_many_rounds_is_still_one() -> None:
    """Its share of rounds as an opponent is 1 in float32, and grows no more."""
    known = {**Camps().init(2), "opposed": torch.ones(2)}
    assert Camps().reasons(known, known, [1]) == {1: OPPOSED}


def test_pairs_of_very_many_clients_are_not_remembered() -> None:
    assert Camps().init(2000)["agreed"].numel() == 0
    assert torch.equal(judged(Camps().init(2000), cast(range(9), 1), range(9)).soft_K, torch.ones(9))


def test_reputations_are_part_of_what_a_run_goes_on_with() -> None:
    made = simulate(
        module(), dataset(), FedVote(reputation=Camps(gap=0.5)), clients=5, rounds=4, cohort=4, steps=3, batch=8,
        attack=Inverse(), hostile=2, device="cpu",
    )  # fmt: skip
    snapshots = list(made.run())
    assert (snapshots[-1].state["reputation/reputation"] < 1).any()
    assert_same(list(made.run(snapshots[1]))[-1].state, snapshots[-1].state)


def test_attackers_who_are_most_of_a_cohort_are_judged_beside_the_clients_that_are_not_in_it() -> None:
    """16 of 40 sleep while all are seen; when they wake, 7 of 10 in a round are hostile."""
    clients, hostile, memory = 40, set(range(24, 40)), Camps().init(40)
    for round in range(1, 5):
        cohort = list(range(10 * (round - 1), 10 * round))
        memory = judged(memory, cast(cohort, round), cohort, round).memory
    cohort = [0, 1, 2, *range(30, 37)]
    votes_KD = cast(cohort, 5)
    votes_KD[3:] *= -1
    assert judged(memory, votes_KD, cohort, 5).soft_K.tolist() == [1.0] * 3 + [0.0] * 7
    awake = sorted(hostile)[:10]
    assert not judged(memory, -cast(awake, 6), awake, 6).soft_K.any(), "nobody counts"
    assert clients == len(memory["work"])


@SEEDS
@pytest.mark.parametrize("attack", ["inverse", "wrong labels"])
def test_attackers_in_sampled_cohorts_never_count_alone_for_two_rounds_in_a_row(attack: str, seed: int) -> None:
    """16 of 40 sleep for ten rounds. 10 clients take part in a round, and often most of them are hostile."""
    memory, alone = Camps().init(40), []
    for round in range(1, 26):
        cohort = sorted(Key(3, round).numpy(f"cohort {seed}").choice(40, 10, replace=False).tolist())
        hostile = [row for row, client in enumerate(cohort) if client >= 24 and round > 10]
        votes_KD = cast(cohort, round, seed=seed)
        if hostile:
            flipped_HD = cast([cohort[row] for row in hostile], round, flipped=True, seed=seed)
            votes_KD[hostile] = flipped_HD if attack == "wrong labels" else -votes_KD[hostile]
        verdict = judged(memory, votes_KD, cohort, round, seed)
        memory, counted_K = verdict.memory, verdict.soft_K > 0
        honest_K = torch.ones(10, dtype=torch.bool).index_fill(0, torch.tensor(hostile, dtype=torch.int64), False)
        alone.append(bool(counted_K.any()) and not bool(counted_K[honest_K].any()))
    assert not any(pair == (True, True) for pair in pairwise(alone))
    assert attack == "wrong labels" or not any(alone)
