"""Ballots with few innovations, or none: they neither hide attackers, nor cost an honest client its vote."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Idle, LabelFlip
from fedvote.engines.simulate import simulate
from fedvote.methods import FedVote
from fedvote.models.digits_cnn import digits_cnn
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps
from fedvote.reputation.ballot_lines import common_counts, cosines
from fedvote.reputation.innovations import Part, innovations
from fedvote.reputation.opposition import aims
from tests.reputation.cast_ballots import ATTACKS, SEEDS, SOFT, Attack, D, N, attacked, cast, judged, weights_without

HOSTILE = range(16, N)


def with_idle(votes_KD: Tensor, idle: int, round: int, seed: int) -> Tensor:
    """The last clients vote as if they had learned nothing: they have no innovation."""
    keys = [Key(seed, round, client) for client in range(N - idle, N)]
    return torch.cat([votes_KD[: N - idle], round_by_shared_random(SOFT.expand(idle, -1), BINARY, keys)])


@SEEDS
@pytest.mark.parametrize("idle", [1, 3, 7])
@pytest.mark.parametrize(
    "attack", [ATTACKS["inverse"], ATTACKS["opposite"], None], ids=["inverse", "opposite", "labels"]
)
def test_attackers_without_innovations_hide_none_of_the_others(attack: Attack | None, idle: int, seed: int) -> None:
    """Fifteen of 31. The idle ones may count: they add nothing to the broadcast."""
    memory = Camps().init(N)
    for round in (1, 2, 3):
        votes_KD = with_idle(attacked(attack, HOSTILE, round, seed), idle, round, seed)
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
    kept_K = verdict.soft_K > 0
    assert torch.equal(kept_K[: N - idle], weights_without(HOSTILE)[: N - idle] > 0)


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_without_innovations_do_not_hide_wrong_labels_in_a_real_federation(seed: int) -> None:
    """Fifteen of 31: seven vote as if untrained, eight train on wrong labels."""
    attack = Idle(intention=LabelFlip(), idle=7)
    run = simulate(
        digits_cnn((1, 8, 8), 10), "digits", FedVote(lr=0.1, reputation=Camps()), seed=seed, clients=31, rounds=6,
        steps=10, batch=8, attack=attack, hostile=15, start="seed", evaluate_every=6, device="cpu",
    )  # fmt: skip
    *_, last = run
    left_out = set(last.record["left_out"])
    assert len(left_out) == 8 and left_out < set(run.federation.hostile)


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_vote_at_random_do_not_hide_wrong_labels_in_a_real_federation(seed: int) -> None:
    """Fifteen of 31: seven have as many innovations as usual, but random ones; eight train on wrong labels."""
    attack = Idle(intention=LabelFlip(), idle=7, work=1.0)
    run = simulate(
        digits_cnn((1, 8, 8), 10), "digits", FedVote(lr=0.1, reputation=Camps()), seed=seed, clients=31, rounds=8,
        steps=20, batch=8, attack=attack, hostile=15, start="seed", evaluate_every=8, device="cpu",
    )  # fmt: skip
    *_, last = run
    left_out = set(last.record["left_out"])
    assert len(left_out) >= 7 and left_out < set(run.federation.hostile)


def found_in(votes_KD: Tensor, round: int) -> list[Part]:
    return innovations(Ballots(votes_KD, torch.arange(N), SOFT, BINARY, (5_000, 15_000)), Key(0, round))


def with_random(votes_KD: Tensor, random: int, round: int) -> Tensor:
    """The last clients move the broadcast in random directions."""
    keys = [Key(0, round, client) for client in range(N - random, N)]
    moved_KD = SOFT + 0.2 * torch.randn(random, D, generator=Key(7, round).torch("random"))
    return torch.cat([votes_KD[: N - random], round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, keys)])


@pytest.mark.parametrize("random", [1, 7, 15])
def test_honest_ballots_have_an_aim_and_ballots_at_random_have_none(random: int) -> None:
    found = found_in(with_random(cast(range(N), 1), random, 1), 1)
    aims_n = aims(cosines(common_counts(found)))
    assert aims_n.tolist() == [client < N - random for client in range(N)]


@pytest.mark.parametrize("friends", [1, 2, 6])
def test_ballots_at_random_have_no_aim_if_they_share_a_part_of_their_noise_with_a_few_others(friends: int) -> None:
    keys = [Key(0, 1, client) for client in range(N - 7, N)]
    noise_7D = torch.randn(7, D, generator=Key(7, 1).torch("random"))
    shared_7D = torch.randn(7, D, generator=Key(8, 1).torch("random"))[torch.arange(7) // (friends + 1)]
    moved_7D = SOFT + 0.2 * (0.8**0.5 * noise_7D + 0.2**0.5 * shared_7D)
    votes_7D = round_by_shared_random(moved_7D.clamp(-1, 1), BINARY, keys)
    found = found_in(torch.cat([cast(range(N), 1)[: N - 7], votes_7D]), 1)
    aims_n = aims(cosines(common_counts(found)))
    assert aims_n.tolist() == [client < N - 7 for client in range(N)]


def test_ballots_without_innovations_have_no_aim() -> None:
    found = found_in(with_idle(cast(range(N), 1), N, 1, 0), 1)
    assert not bool(aims(cosines(common_counts(found))).any())
    found = found_in(with_idle(cast(range(N), 1), 7, 1, 0), 1)
    aims_n = aims(cosines(common_counts(found)))
    assert aims_n.tolist() == [client < N - 7 for client in range(N)]


def honest_votes(soft_D: Tensor, step: float, seed: int) -> Tensor:
    generator = Key(seed).torch("steps")
    moved_KD = soft_D + step * torch.randn(N, len(soft_D), generator=generator)
    return round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, [Key(seed, 1, client) for client in range(N)])


@pytest.mark.parametrize("seed", range(5))
def test_one_innovation_in_a_small_layer_is_no_forgery(seed: int) -> None:
    """Most clients have no innovation in a layer of a few decided weights; some have one or two."""
    soft_D = torch.where(torch.arange(4000) < 8, 0.99, SOFT[:4000])
    votes_KD = honest_votes(soft_D, 0.05, seed)
    assert 0 < int((votes_KD[:, :8] < 0).any(1).sum()) < N / 2
    ballots = Ballots(votes_KD, torch.arange(N), soft_D, BINARY, (8, 3992))
    assert torch.equal(Camps().judge(Camps().init(N), ballots, Key(seed, 1)).soft_K, torch.ones(N))


@pytest.mark.parametrize("seed", range(5))
def test_coincidences_on_decided_weights_are_no_copies(seed: int) -> None:
    """A broadcast of two levels: a client's rounding departs from it in one weight of a thousand."""
    soft_D = 0.998 * SOFT.sign()
    ballots = Ballots(honest_votes(soft_D, 0.06, seed), torch.arange(N), soft_D, BINARY)
    assert torch.equal(Camps().judge(Camps().init(N), ballots, Key(seed, 1)).soft_K, torch.ones(N))
