"""Attacks on parts: copies, layers, ladders, minorities with other inputs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Camps
from tests.reputation.cast_ballots import (
    GOAL,
    OTHER,
    SEEDS,
    SOFT,
    D,
    N,
    attacked,
    ballots,
    cast,
    judged,
    mixtures,
    weights_without,
)


def copies(own_HD: Tensor, victims_VD: Tensor, share: float) -> Tensor:
    lots = Key(7).torch("copies")
    whose_D = torch.randint(len(victims_VD), (1, D), generator=lots)
    return torch.where(torch.rand(D, generator=lots) < share, victims_VD.gather(0, whose_D)[0], own_HD)


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY])
@pytest.mark.parametrize(("victims", "share", "round"), [(1, 1.0, 1), (1, 1.0, 9), (1, 0.3, 2), (4, 1.0, 1)])
def test_whoever_copies_has_no_vote_and_whoever_is_copied_keeps_it(
    victims: int, share: float, round: int, alphabet: Alphabet
) -> None:
    """Fifteen of 31, who would be the majority together with the one they copy."""
    votes_KD = cast(range(N), round, alphabet)
    votes_KD[16:] = copies(votes_KD[16:], votes_KD[:victims], share)
    rule = Camps()
    verdict = rule.judge(rule.init(N), ballots(votes_KD, range(N), alphabet), Key(0, round))
    assert verdict.soft_K.tolist() == [1.0] * 16 + [0.0] * 15


@SEEDS
def test_a_minority_with_other_inputs_keeps_its_votes_as_long_as_it_undoes_nobodys_work(seed: int) -> None:
    memory = Camps().init(N)
    for round in range(1, 6):
        votes_KD, keys = cast(range(N), round, seed=seed), [Key(seed, round, client) for client in range(25, N)]
        moved_KD = SOFT + mixtures(N, seed)[25:N] @ OTHER + GOAL
        votes_KD[25:] = round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, keys)
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(N))


LAYERS = (200, 4800, 15000)


def layer_inverted(votes_KD: Tensor, rows: Sequence[int], start: int, stop: int) -> Tensor:
    forged_KD = votes_KD.clone()
    forged_KD[list(rows), start:stop] *= -1
    return forged_KD


@SEEDS
@pytest.mark.parametrize("hostile", [5, 10, 15])
@pytest.mark.parametrize(("start", "stop"), [(0, 200), (0, 100), (200, 700), (5000, 6500)])
def test_who_inverts_a_small_part_of_a_layer_has_no_vote(start: int, stop: int, hostile: int, seed: int) -> None:
    votes_KD = layer_inverted(cast(range(N), 1, seed=seed), range(hostile), start, stop)
    verdict = Camps().judge(Camps().init(N), ballots(votes_KD, range(N), layers=LAYERS), Key(seed, 1))
    assert torch.equal(verdict.soft_K, weights_without(range(hostile)))


def disagreeing(votes_KD: Tensor, victim: int, share: float, seed: int, round: int = 1) -> Tensor:
    """(D,) the victim's votes where they disagree with its random numbers, and are copied; 0 elsewhere."""
    expected_D = round_by_shared_random(SOFT[None], BINARY, [Key(seed, round, victim)])[0]
    taken_D = torch.rand(D, generator=Key(9, seed).torch("taken")) < share
    return torch.where((votes_KD[victim] != expected_D) & taken_D, votes_KD[victim], 0)


@SEEDS
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0])
def test_who_copies_votes_that_disagree_with_their_senders_numbers_takes_nobodys_vote(share: float, seed: int) -> None:
    """Fifteen of 31, who would be the majority together with the client that they copy."""
    votes_KD = cast(range(N), 1, seed=seed)
    copied_D = disagreeing(votes_KD, 3, share, seed)
    votes_KD[16:] = torch.where(copied_D != 0, copied_D, votes_KD[16:])
    verdict = Camps().judge(Camps().init(N), ballots(votes_KD, range(N), layers=LAYERS), Key(seed, 1))
    assert bool((verdict.soft_K[:16] == 1).all()), "no honest client is outvoted by them"
    assert share < 1 or not bool(verdict.soft_K[16:].any())


def test_a_ladder_without_gaps_is_left_out_from_the_rung_on_that_stands_far_above_the_honest() -> None:
    votes_KD = cast(range(N), 1)
    for rung, row in enumerate(range(16, N), 1):
        votes_KD[row, : D * rung // 20] *= -1
    kept_K = judged(Camps().init(N), votes_KD, range(N)).soft_K > 0
    assert kept_K[:16].all() and int(kept_K[16:].sum()) <= 2


@SEEDS
def test_opponents_who_copy_an_honest_client_cannot_make_it_the_majority_of_their_camp(seed: int) -> None:
    """15 of 31 learn from wrong labels, and copy what client 3 learns: with it they would be 16."""
    memory = Camps().init(N)
    for round in (1, 2, 3):
        votes_KD = attacked(None, range(16, N), round, seed)
        copied_D = disagreeing(votes_KD, 3, 0.6, seed, round)
        votes_KD[16:] = torch.where(copied_D != 0, copied_D, votes_KD[16:])
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K > 0, weights_without(range(16, N)) > 0)


@SEEDS
@pytest.mark.parametrize("hostile", [5, 10, 15])
def test_attackers_who_push_the_same_weights_have_no_vote(hostile: int, seed: int) -> None:
    """They round by their own numbers. They have fewer innovations than others, with no longer jumps in all."""
    generator = Key(8, seed).torch("push")
    moved_KD = SOFT + 0.15 * torch.randn(N, D, generator=generator)
    lots_D = torch.rand(D, generator=generator)
    moved_KD[N - hostile :] = SOFT + torch.where(lots_D < 0.05, 0.5, torch.where(lots_D < 0.1, -0.5, 0.0))
    keys = [Key(seed, 1, client) for client in range(N)]
    votes_KD = round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, keys)
    verdict = judged(Camps().init(N), votes_KD, range(N), seed=seed)
    assert torch.equal(verdict.soft_K, weights_without(range(N - hostile, N)))


@pytest.mark.parametrize(("between", "honest_votes"), [(-0.005, 31), (-0.03, 16)])
def test_a_camp_that_agrees_far_more_takes_the_votes_only_of_clients_who_pull_clearly(
    between: float, honest_votes: int
) -> None:
    """Fifteen attackers push the same weights in all rounds. With an honest client that agrees they are 16 of 31."""
    second_N = torch.arange(N) >= 15
    alike_NN = torch.where(second_N == second_N[:, None], torch.where(second_N, 0.08, 0.012), between)
    met = 1e6  # rounds, beside which the round that is judged counts for nothing
    memory = Camps().init(N) | {"agreed": met * alike_NN, "met": torch.full((N, N), met)}
    kept_N = judged(memory, cast(range(N), 1), range(N)).soft_K > 0
    assert int(kept_N.sum()) == honest_votes and kept_N[15:].all()
