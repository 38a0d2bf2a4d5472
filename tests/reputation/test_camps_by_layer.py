"""Attackers who turn one layer around, and are honest elsewhere: camps in the agreement of that layer over rounds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Frame, Seen
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Camps
from fedvote.reputation.layer_pairs import MOST_CLIENTS, PLACES
from tests.reputation.cast_ballots import GOAL, LESSONS, SOFT, D, N, ballots, mixtures

SMALL, ROUNDS = 400, 7
FIRST = (SMALL, D // 2 - SMALL, D // 2)
LAST = (D // 2, D // 2 - SMALL, SMALL)
FORTY = (SMALL, *[500] * 38, D - SMALL - 38 * 500)
EIGHTY = tuple([D // 80] * 80)


def cast_with(turned: slice, hostile: int, round: int, seed: int) -> Tensor:
    """The ballots of all clients; the first `hostile` vote in some weights as if they had learned the opposite."""
    learnt_KD = mixtures(N, seed) @ LESSONS + GOAL
    learnt_KD[:hostile, turned] *= -1
    return round_by_shared_random(
        (SOFT + learnt_KD).clamp(-1, 1), BINARY, [Key(seed, round, client) for client in range(N)]
    )


def weights_over_rounds(
    turned: slice, hostile: int, layers: tuple[int, ...], seed: int, last_round: int = ROUNDS
) -> list[Tensor]:
    """Everybody's vote weight in every round; attackers stop after the last round that they attack."""
    rule, found = Camps(), []
    memory = rule.init(N)
    for round in range(1, ROUNDS + 1):
        votes_KD = cast_with(turned, hostile if round <= last_round else 0, round, seed)
        verdict = rule.judge(memory, ballots(votes_KD, range(N), layers=layers), Key(seed, round))
        memory = verdict.memory
        found.append(verdict.soft_K)
    return found


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("turned", "layers", "hostile"),
    [(slice(SMALL), FIRST, 10), (slice(D - SMALL, D), LAST, 15), (slice(SMALL), FORTY, 15)],
    ids=["first", "last", "first of forty"],
)
def test_who_turns_one_small_layer_around_is_left_out(
    turned: slice, layers: tuple[int, ...], hostile: int, seed: int
) -> None:
    *_, weights_K = weights_over_rounds(turned, hostile, layers, seed)
    assert not weights_K[:hostile].any() and torch.equal(weights_K[hostile:], torch.ones(N - hostile))


def test_who_turns_one_small_layer_around_and_is_nearly_idle_elsewhere_is_left_out() -> None:
    """The whole ballot has less than a quarter of the usual innovations."""
    rule, hostile = Camps(), 15
    memory = rule.init(N)
    for round in range(1, ROUNDS + 1):
        keys = [Key(0, round, client) for client in range(hostile)]
        votes_KD = cast_with(slice(SMALL), hostile, round, 0)
        idle_KD = round_by_shared_random(SOFT.expand(hostile, -1), BINARY, keys)
        thinned_D = (torch.arange(D) >= SMALL) & (torch.rand(D, generator=Key(0, round).torch("thinned")) > 0.15)
        votes_KD[:hostile] = torch.where(thinned_D, idle_KD, votes_KD[:hostile])
        verdict = rule.judge(memory, ballots(votes_KD, range(N), layers=FIRST), Key(0, round))
        memory = verdict.memory
    assert torch.equal(verdict.soft_K > 0, torch.arange(N) >= hostile)


def test_without_layers_nobody_sees_it() -> None:
    """The turned weights are a fiftieth of the ballot, so that whole ballots agree."""
    *_, weights_K = weights_over_rounds(slice(SMALL), 15, (), seed=0)
    assert torch.equal(weights_K, torch.ones(N))


@pytest.mark.parametrize(("layers", "seed"), [(FIRST, 0), (FORTY, 1)], ids=["three layers", "forty layers"])
def test_honest_clients_keep_their_votes_in_every_layer(layers: tuple[int, ...], seed: int) -> None:
    assert all(torch.equal(w, torch.ones(N)) for w in weights_over_rounds(slice(0), 0, layers, seed))


@pytest.mark.parametrize("seed", [0, 1])
def test_attackers_who_side_with_a_few_honest_clients_in_a_layer_frame_nobody(seed: int) -> None:
    """Honest clients have nothing in common there."""
    hostile, rule = 15, Camps()
    memory, layers = rule.init(N), {"first": slice(SMALL), "others": slice(SMALL, D)}
    learnt_KD = mixtures(N, seed) @ LESSONS + GOAL
    learnt_KD[:, :SMALL] = 0.15 * torch.randn(N, SMALL, generator=Key(seed).torch("own"))
    for round in range(1, ROUNDS + 1):
        keys = [Key(seed, round, client) for client in range(N)]
        votes_KD = round_by_shared_random((SOFT + learnt_KD).clamp(-1, 1), BINARY, keys)
        own, honest = {"votes": votes_KD[:hostile]}, {"votes": votes_KD[hostile:]}
        seen = Seen(own, honest, keys[:hostile], N, {"votes": SOFT}, layers=layers, honest_keys=keys[hostile:])
        votes_KD[:hostile] = Frame(turns=ROUNDS + 1).tamper(seen)["votes"]
        verdict = rule.judge(memory, ballots(votes_KD, range(N), layers=(SMALL, D - SMALL)), Key(seed, round))
        memory = verdict.memory
        assert torch.equal(verdict.soft_K[hostile:], torch.ones(N - hostile))


def test_a_few_rounds_decide_nothing_and_who_stops_has_a_vote_again() -> None:
    first, second, third, *_, last = weights_over_rounds(slice(SMALL), 12, FIRST, seed=0, last_round=3)
    assert bool(first.all()) and bool(second.all())
    assert not third[:12].any() and bool(last.all())


def test_agreement_in_layers_is_remembered_for_so_many_layers_and_clients() -> None:
    rule = Camps()
    votes_KD = cast_with(slice(0), 0, 1, 0)
    for layers in (FIRST, FORTY, EIGHTY):
        memory = rule.judge(rule.init(N), ballots(votes_KD, range(N), layers=layers), Key(0, 1)).memory
        used_P = memory["agreed_by_layer"].any(2).any(0)
        assert used_P.tolist() == [place < len(layers) for place in range(PLACES)]
    assert not rule.init(MOST_CLIENTS + 1)["agreed_by_layer"].numel()
