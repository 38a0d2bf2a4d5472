"""Only the camp of the majority has a vote: on ballots of which it is known who cast them, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Inverse
from fedvote.core import State
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.methods import FedVote
from fedvote.quantize import BINARY, TERNARY, Alphabet, plurality, round_by_shared_random, tally
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps, Verdict
from tests.reputation.honest_rounds import CLIENTS, MIXTURES, lost_votes
from tests.toy import assert_same, dataset, module

N, D, CLASSES = 31, 20_000, 10
SOFT = torch.rand(D, generator=Key(1).torch("soft")) * 1.8 - 0.9
LESSONS = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("lessons"))  # what is learnt from a class
OTHER = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("mirrored"))  # and from inputs of another kind
MIRRORED = OTHER - 0.5 * LESSONS  # and from one with another's label
GOAL = 0.15 * torch.randn(D, generator=Key(1).torch("goal"))  # what everybody learns
WRONG = 0.15 * torch.randn(D, generator=Key(1).torch("wrong")) - 0.5 * GOAL
Attack = Callable[[Tensor, Tensor, int], Tensor]  # honest votes, and the attackers' own -> what attackers send


SEEDS = pytest.mark.parametrize("seed", [0, 1])  # of the clients' random numbers and data


def mixtures(clients: int, seed: int) -> Tensor:
    """(N, CLASSES) how much each client has of each class."""
    drawn = torch.rand(clients, CLASSES, generator=Key(2, seed).torch("mixtures")).log().neg() ** 2
    return drawn / drawn.sum(1, keepdim=True)


def cast(
    clients: Sequence[int], round: int, alphabet: Alphabet = BINARY, flipped: bool = False, seed: int = 0
) -> Tensor:
    """The ballots of honest clients, or of clients that train on wrong labels, rounded as clients do."""
    learnt_KD = mixtures(max(N, *clients, 0) + 1, seed)[list(clients)] @ (MIRRORED if flipped else LESSONS)
    keys = [Key(seed, round, client) for client in clients]
    moved_KD = SOFT + learnt_KD + (WRONG if flipped else GOAL)
    return round_by_shared_random(moved_KD.clamp(-1, 1), alphabet, keys)


def ballots(
    votes_KD: Tensor, clients: Sequence[int], alphabet: Alphabet = BINARY, layers: tuple[int, ...] = ()
) -> Ballots:
    return Ballots(votes_KD, torch.tensor(list(clients)), SOFT[: votes_KD.shape[1]], alphabet, layers)


def judged(memory: State, votes_KD: Tensor, clients: Sequence[int], round: int = 1, seed: int = 0) -> Verdict:
    return Camps().judge(memory, ballots(votes_KD, clients), Key(seed, round))


def coins(shape: torch.Size, round: int, alphabet: Alphabet = BINARY) -> Tensor:
    drawn = torch.randint(len(alphabet), shape, generator=Key(4, round).torch("coins"))
    return torch.tensor(alphabet, dtype=torch.int8)[drawn]


def some_inverted(share: float) -> Attack:
    def attack(others: Tensor, own: Tensor, round: int) -> Tensor:
        lots = torch.rand(own.shape, generator=Key(5, round).torch("flips"))
        return torch.where(lots < share, -own, own)

    return attack


def decided(votes_KD: Tensor, round: int) -> Tensor:
    heads_K = torch.ones(len(votes_KD))
    return plurality(tally(votes_KD, heads_K, BINARY), BINARY, Key(6, round).torch("tie"))


def honest(others: Tensor, own: Tensor, round: int) -> Tensor:
    return own


def of_all_kinds(others: Tensor, own: Tensor, round: int) -> Tensor:
    third = len(own) // 3
    return torch.cat(
        [-own[:third], coins(own[third : 2 * third].shape, round), -decided(others, round).expand_as(own[2 * third :])]
    )


ATTACKS: dict[str, Attack] = {
    "inverse": lambda others, own, round: -own,
    "random": lambda others, own, round: coins(own.shape, round),
    "opposite": lambda others, own, round: -decided(others, round).expand_as(own),
    "10 % inverted": some_inverted(0.1),
    "30 % inverted": some_inverted(0.3),
    "70 % inverted": some_inverted(0.7),
    "one common ballot": lambda others, own, round: decided(own, round).expand_as(own),
    "one common random ballot": lambda others, own, round: coins(own[:1].shape, round).expand_as(own),
    "of all kinds": of_all_kinds,
}


def attacked(attack: Attack | None, hostile: Sequence[int], round: int = 1, seed: int = 0) -> Tensor:
    """The ballots of all clients; without an attack, the hostile ones learn from wrong labels."""
    votes_KD, rows = cast(range(N), round, seed=seed), list(hostile)
    others = [client for client in range(N) if client not in hostile]
    if attack is None:
        votes_KD[rows] = cast(rows, round, flipped=True, seed=seed)
    else:
        votes_KD[rows] = attack(votes_KD[others], votes_KD[rows], round)
    return votes_KD


def weights_without(hostile: Sequence[int], clients: int = N) -> Tensor:
    return torch.ones(clients).index_fill(0, torch.tensor(list(hostile)), 0)


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


def test_reputation_is_the_majority_in_a_cohort_of_attackers() -> None:
    """20 honest and 11 hostile clients; once known, 7 of them are no majority against 4 honest ones."""
    hostile, memory = range(20, N), Camps().init(N)
    for round in range(1, 6):
        memory = judged(memory, attacked(ATTACKS["inverse"], hostile, round), range(N), round).memory
    cohort = [0, 5, 11, 17, *range(20, 27)]
    votes_KD = attacked(ATTACKS["inverse"], hostile, 6)[cohort]
    assert judged(memory, votes_KD, cohort, 6).soft_K.tolist() == [1] * 4 + [0] * 7
    assert judged(Camps().init(N), votes_KD, cohort, 6).soft_K.tolist() == [0] * 4 + [1] * 7


def test_only_the_reputations_of_a_cohort_change() -> None:
    cohort = [2, 3, 5, 8, 13, 21]
    votes_KD = cast(cohort, 1)
    votes_KD[1] *= -1
    memory = judged(Camps().init(N), votes_KD, cohort).memory
    torch.testing.assert_close(memory["reputation"], torch.ones(N).index_fill(0, torch.tensor([3]), 0.8))
    assert (memory["work"] > 0).all(1).nonzero()[:, 0].tolist() == [2, 5, 8, 13, 21]


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
def test_a_minority_with_other_inputs_keeps_its_votes_as_long_as_it_undoes_nobodys_work(seed: int) -> None:
    memory = Camps().init(N)
    for round in range(1, 6):
        votes_KD, keys = cast(range(N), round, seed=seed), [Key(seed, round, client) for client in range(25, N)]
        moved_KD = SOFT + mixtures(N, seed)[25:N] @ OTHER + GOAL
        votes_KD[25:] = round_by_shared_random(moved_KD.clamp(-1, 1), BINARY, keys)
        verdict = judged(memory, votes_KD, range(N), round, seed)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(N))


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
def test_options_that_make_no_sense_are_refused(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Camps(**options)


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
