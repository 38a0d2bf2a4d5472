"""Only the camp of the majority has a vote: on ballots of which it is known who cast them, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Inverse
from fedvote.core import State
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.methods import FedVote
from fedvote.quantize import BINARY, TERNARY, Alphabet, plurality, round_by_shared_random, round_stack, tally
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps, Verdict
from fedvote.reputation.camps import BLOCK, alikeness
from fedvote.reputation.copied_votes import COPIED, copied_votes, sample
from tests.toy import assert_same, dataset, module

N, D, CLASSES = 31, 20_000, 10
SOFT = torch.rand(D, generator=Key(1).torch("soft")) * 1.8 - 0.9
LESSONS = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("lessons"))  # what is learnt from a class
MIRRORED = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("mirrored"))  # and from one with another's label
GOAL = 0.15 * torch.randn(D, generator=Key(1).torch("goal"))  # what everybody learns
WRONG = 0.15 * torch.randn(D, generator=Key(1).torch("wrong"))
Attack = Callable[[Tensor, Tensor, int], Tensor]  # honest votes, and the attackers' own -> what attackers send


def mixtures(clients: int) -> Tensor:
    """(N, CLASSES) how much each client has of each class."""
    drawn = torch.rand(clients, CLASSES, generator=Key(2).torch("mixtures")).log().neg() ** 2
    return drawn / drawn.sum(1, keepdim=True)


def cast(clients: Sequence[int], round: int, alphabet: Alphabet = BINARY, flipped: bool = False) -> Tensor:
    """The ballots of honest clients, or of clients that train on wrong labels, with dice of their own."""
    learnt_KD = mixtures(N)[list(clients)] @ (MIRRORED if flipped else LESSONS) + (WRONG if flipped else GOAL)
    generators = [Key(3, round, client).torch("rounding") for client in clients]
    return round_stack((SOFT + learnt_KD).clamp(-1, 1), alphabet, generators)


def ballots(votes_KD: Tensor, clients: Sequence[int], alphabet: Alphabet = BINARY) -> Ballots:
    return Ballots(votes_KD, torch.tensor(list(clients)), SOFT, alphabet)


def judged(memory: State, votes_KD: Tensor, clients: Sequence[int], round: int = 1) -> Verdict:
    return Camps().judge(memory, ballots(votes_KD, clients), Key(0, round))


def coins(shape: torch.Size, round: int, alphabet: Alphabet = BINARY) -> Tensor:
    drawn = torch.randint(len(alphabet), shape, generator=Key(4, round).torch("coins"))
    return torch.tensor(alphabet, dtype=torch.int8)[drawn]


def some_inverted(share: float) -> Attack:
    def attack(honest: Tensor, own: Tensor, round: int) -> Tensor:
        lots = torch.rand(own.shape, generator=Key(5, round).torch("flips"))
        return torch.where(lots < share, -own, own)

    return attack


def decided(votes_KD: Tensor, round: int) -> Tensor:
    heads_K = torch.ones(len(votes_KD))
    return plurality(tally(votes_KD, heads_K, BINARY), BINARY, Key(6, round).torch("tie"))


def of_all_kinds(honest: Tensor, own: Tensor, round: int) -> Tensor:
    third = len(own) // 3
    return torch.cat(
        [-own[:third], coins(own[third : 2 * third].shape, round), -decided(honest, round).expand_as(own[2 * third :])]
    )


ATTACKS: dict[str, Attack] = {
    "inverse": lambda honest, own, round: -own,
    "random": lambda honest, own, round: coins(own.shape, round),
    "opposite": lambda honest, own, round: -decided(honest, round).expand_as(own),
    "10 % inverted": some_inverted(0.1),
    "30 % inverted": some_inverted(0.3),
    "70 % inverted": some_inverted(0.7),
    "one common ballot": lambda honest, own, round: decided(own, round).expand_as(own),
    "one common random ballot": lambda honest, own, round: coins(own[:1].shape, round).expand_as(own),
    "of all kinds": of_all_kinds,
}


def attacked(attack: Attack | None, hostile: Sequence[int], round: int = 1) -> Tensor:
    """The ballots of all clients; without an attack, the hostile ones learn from wrong labels."""
    votes_KD, rows = cast(range(N), round), list(hostile)
    honest = [client for client in range(N) if client not in hostile]
    wrong = cast(rows, round, flipped=True) if attack is None else attack(votes_KD[honest], votes_KD[rows], round)
    votes_KD[rows] = wrong
    return votes_KD


def weights_without(hostile: Sequence[int], clients: int = N) -> Tensor:
    return torch.ones(clients).index_fill(0, torch.tensor(list(hostile)), 0)


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5, 8, 11, 16, 31])
def test_honest_clients_with_different_data_all_keep_their_votes(clients: int) -> None:
    memory = Camps().init(N)
    for round in range(1, 6):
        verdict = judged(memory, cast(range(clients), round), range(clients), round)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(clients))
        assert torch.equal(verdict.hard_K, torch.ones(clients))


@pytest.mark.parametrize("hostile", [1, 5, 10, 15])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attackers_short_of_half_have_no_vote_from_the_first_round_on(attack: Attack, hostile: int) -> None:
    if hostile == 1 and attack is ATTACKS["one common ballot"]:
        return  # one honest ballot
    rows = range(3, 3 + 2 * hostile, 2) if hostile < 15 else range(1, N, 2)
    memory = Camps().init(N)
    for round in (1, 2):
        verdict = judged(memory, attacked(attack, rows, round), range(N), round)
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, weights_without(rows))
        assert torch.equal(verdict.hard_K, weights_without(rows))


@pytest.mark.parametrize("hostile", [5, 10, 15])
def test_clients_that_learn_from_wrong_labels_have_no_vote(hostile: int) -> None:
    """Their ballots are as close to the soft vote, and to each other, as honest ones are."""
    rows = range(2 * hostile)[::2]
    votes_KD = attacked(None, rows)
    alike_KK = alikeness(votes_KD, BINARY)
    honest = [client for client in range(N) if client not in rows]
    own = [[float(alike_KK[i, j]) for i in camp for j in camp if i < j] for camp in (honest, list(rows))]
    assert abs(sum(own[0]) / len(own[0]) - sum(own[1]) / len(own[1])) < 0.01
    assert torch.equal(judged(Camps().init(N), votes_KD, range(N)).soft_K, weights_without(rows))


@pytest.mark.parametrize("hostile", [5, 10, 15])
@pytest.mark.parametrize("attack", ["inverse", "random", "wrong labels"])
def test_ternary_votes_fall_into_camps_too(attack: str, hostile: int) -> None:
    rows = list(range(N))[-hostile:]
    votes_KD = cast(range(N), 1, TERNARY)
    wrong = {
        "inverse": -votes_KD[rows],
        "random": coins(votes_KD[rows].shape, 1, TERNARY),
        "wrong labels": cast(rows, 1, TERNARY, flipped=True),
    }
    votes_KD[rows] = wrong[attack]
    verdict = Camps().judge(Camps().init(N), ballots(votes_KD, range(N), TERNARY), Key(0, 1))
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


def test_a_sleeper_loses_its_vote_when_it_wakes_and_earns_it_back_when_it_repents() -> None:
    rows, memory, weight = range(10), Camps().init(N), []
    for round in range(1, 16):
        votes_KD = attacked(ATTACKS["inverse"], rows) if 4 <= round < 9 else cast(range(N), round)
        verdict = judged(memory, votes_KD, range(N), round)
        memory = verdict.memory
        weight.append(verdict.soft_K)
        assert torch.equal(verdict.soft_K[10:], torch.ones(21))
    assert all((w[:10] == 1).all() for w in weight[:3])
    assert all((w[:10] == 0).all() for w in weight[3:8])
    # 1 - 0.8^5 of its reputation is gone, and comes back by a fifth of what is missing every round
    missing = 1 - 0.8**5
    for since, w in enumerate(weight[8:], 1):
        torch.testing.assert_close(w[:10], torch.full((10,), 1 - missing * 0.8**since))


def by_lots(clients: Sequence[int], alphabet: Alphabet = BINARY, round: int = 1) -> Tensor:
    """Honest ballots, rounded as clients do."""
    learnt_KD = mixtures(N)[list(clients)] @ LESSONS + GOAL
    return round_by_shared_random(
        (SOFT + learnt_KD).clamp(-1, 1), alphabet, [Key(0, round, client) for client in clients]
    )


def copies(own_HD: Tensor, victims_VD: Tensor, share: float) -> Tensor:
    lots = Key(7).torch("copies")
    whose_D = torch.randint(len(victims_VD), (1, D), generator=lots)
    return torch.where(torch.rand(D, generator=lots) < share, victims_VD.gather(0, whose_D)[0], own_HD)


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY])
def test_honest_ballots_agree_with_the_lots_of_others_by_chance_and_with_their_own_by_far_more(
    alphabet: Alphabet,
) -> None:
    votes_KD = by_lots(range(N), alphabet)
    found_KK = copied_votes(ballots(votes_KD, range(N), alphabet), alikeness(votes_KD, alphabet), Key(0, 1))
    others = found_KK[~torch.eye(N, dtype=torch.bool)]
    assert float(others.mean()) == pytest.approx(0, abs=0.2) and float(others.std()) == pytest.approx(1, abs=0.1)
    assert float(others.max()) < COPIED < float(found_KK.diagonal().min())


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY])
@pytest.mark.parametrize(("victims", "share", "round"), [(1, 1.0, 1), (1, 1.0, 9), (1, 0.3, 2), (4, 1.0, 1)])
def test_whoever_copies_has_no_vote_and_whoever_is_copied_keeps_it(
    victims: int, share: float, round: int, alphabet: Alphabet
) -> None:
    """Fifteen of 31, who would be the majority together with the one they copy."""
    votes_KD = by_lots(range(N), alphabet, round)
    votes_KD[16:] = copies(votes_KD[16:], votes_KD[:victims], share)
    rule = Camps()
    verdict = rule.judge(rule.init(N), ballots(votes_KD, range(N), alphabet), Key(0, round))
    assert verdict.soft_K.tolist() == [1.0] * 16 + [0.0] * 15


def test_nobody_knows_which_weights_are_looked_at_before_the_last_ballot_is_there() -> None:
    votes_KD = by_lots(range(5))
    changed_KD = votes_KD.clone()
    changed_KD[4, 0] = -changed_KD[4, 0]
    one, same, other = (sample(alikeness(each, BINARY), D, 100) for each in (votes_KD, votes_KD, changed_KD))
    assert torch.equal(one, same) and not torch.equal(one, other) and int(one.max()) < D
    assert torch.equal(sample(alikeness(votes_KD, BINARY), D, D), torch.arange(D))


def test_where_most_heads_borrow_it_says_nothing() -> None:
    votes_KD = by_lots(range(5))
    votes_KD[1:4] = votes_KD[0]
    assert judged(Camps().init(N), votes_KD, range(5)).soft_K[:4].tolist() == [1.0] * 4


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


def test_wide_is_in_spreads_of_the_camp_and_less_for_those_who_were_left_out_before() -> None:
    """Six ballots of spread 2: 3 (1 + 2 / 4) 2 = 9; a gap beside 27 of them need be only 3 (1 + 2 / 25) 2 = 6.48."""
    places = torch.tensor([-2.0, -2.0, -1.0, 1.0, 2.0, 2.0]) * (4 * 5 / 18) ** 0.5
    heads = torch.ones(2)
    assert Camps().enough(places, 0.0, heads) == pytest.approx(9)
    assert Camps(gap=1.5).enough(places, 0.0, heads) == pytest.approx(4.5)
    assert Camps().enough(places, 4.0, heads) == pytest.approx(18)
    assert Camps().enough(places, 0.0, torch.tensor([0.25, 0.75])) == pytest.approx(4.5)
    many = torch.arange(27.0)
    assert Camps().enough(many * (2 / many.std()), 0.0, heads) == pytest.approx(6.48)


def test_neither_the_order_nor_the_names_of_clients_matter() -> None:
    votes_KD = attacked(None, range(10))
    order = torch.randperm(N, generator=Key(7).torch("order"))
    verdict = judged(Camps().init(N), votes_KD, range(N))
    turned = Camps().judge(Camps().init(N), Ballots(votes_KD[order], order, SOFT, BINARY), Key(0, 1))
    renamed = Camps().judge(Camps().init(N), Ballots(votes_KD, order, SOFT, BINARY), Key(8, 9))
    assert torch.equal(turned.soft_K, verdict.soft_K[order])
    assert_same(turned.memory, verdict.memory)
    assert torch.equal(renamed.soft_K, verdict.soft_K)


def test_a_rule_is_told_of_votes_and_names_and_of_nothing_else() -> None:
    assert [field.name for field in fields(Ballots)] == ["votes", "clients_K", "soft_D", "alphabet"]


def test_a_minority_that_is_different_for_honest_reasons_is_left_out_too() -> None:
    """What the rule cannot know: ten clients that learn another task look like ten that were told wrong labels."""
    votes_KD = torch.cat([cast(range(21), 1), cast(range(21, N), 1, flipped=True)])
    assert torch.equal(judged(Camps().init(N), votes_KD, range(N)).soft_K, weights_without(range(21, N)))


def test_alikeness_is_the_cosine_however_many_weights_there_are() -> None:
    votes = torch.tensor([[1, 1, 1, 1], [1, 1, -1, -1], [-1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.int8)
    expected = torch.tensor([[1, 0, -0.5, 0], [0, 1, -0.5, 0], [-0.5, -0.5, 1, 0], [0, 0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(alikeness(votes, TERNARY), expected)
    repeats = BLOCK // 4 + 1
    torch.testing.assert_close(alikeness(votes.repeat(1, repeats), TERNARY), expected)


@pytest.mark.parametrize("D", [1, 63, 64, 1000, BLOCK + 3])
def test_alikeness_of_binary_ballots_is_the_same_to_the_bit_whichever_way_it_is_found(D: int) -> None:
    votes_KD = (torch.rand((7, D), generator=Key(0).torch("alike")) < 0.3).to(torch.int8) * 2 - 1
    votes_KD[3] = votes_KD[2]
    dots_KK = (votes_KD.double() @ votes_KD.double().T) / D
    assert torch.equal(alikeness(votes_KD, BINARY), dots_KK)
    torch.testing.assert_close(alikeness(votes_KD, TERNARY), dots_KK, rtol=1e-14, atol=1e-14)


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
