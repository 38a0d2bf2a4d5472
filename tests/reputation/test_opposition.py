"""When two groups of clients are camps that oppose each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fedvote.randomness import Key
from fedvote.reputation.client_pairs import Pairs, no_pairs, remembered
from fedvote.reputation.opposition import LONG, may_accuse, opposed_camp, still_opposed, undisputed_for_long

N, MINORITY, FEW = 31, 12, 6


def pairs(between: float, within: float, noise: float, minority: int = MINORITY, forged: int = 0) -> Pairs:
    """Two groups, the first of them the smaller; each pair's agreement is its mean and noise."""
    second_N = torch.arange(N) >= minority
    alike_NN = torch.where(second_N == second_N[:, None], within, between).double()
    drawn_NN = noise * torch.randn(N, N, generator=Key(3).torch("pairs"), dtype=torch.float64).triu(1)
    nobody = torch.empty(0, N, dtype=torch.float64)
    return Pairs(alike_NN + drawn_NN + drawn_NN.T, torch.ones(N), nobody, torch.empty(0), N / 2, N + forged)


def of_these(made: Pairs, inside: Tensor) -> Pairs:
    """A round of some of the ballots alone."""
    n = len(inside)
    alike_nn, absent_An = made.alike_nn[inside][:, inside], made.absent_An[:, inside]
    return replace(made, alike_nn=alike_nn, heads_n=made.heads_n[inside], absent_An=absent_An, half=n / 2, ballots=n)


def test_camps_that_explain_most_of_the_agreement_oppose_each_other() -> None:
    found = opposed_camp(pairs(-0.005, 0.05, 0.015), torch.arange(N))
    assert found is not None and found.tolist() == list(range(MINORITY, N))


@pytest.mark.parametrize(("between", "within", "noise"), [(-0.005, 0.014, 0.012), (0.005, 0.05, 0.01)])
def test_groups_that_explain_less_or_agree_a_little_do_not(between: float, within: float, noise: float) -> None:
    """The first: honest clients with all classes beside others with two classes each, on digits."""
    assert opposed_camp(pairs(between, within, noise), torch.arange(N)) is None


def test_a_small_camp_that_pulls_a_little_stays_and_one_that_pulls_clearly_goes() -> None:
    """At least 0.3 of the cosine within camps: 0.015 of 0.05. A large camp need only pull at all."""
    everybody = torch.arange(N)
    assert opposed_camp(pairs(-0.01, 0.05, 0.005, FEW), everybody) is None
    for between, minority in ((-0.02, FEW), (-0.01, MINORITY)):
        found = opposed_camp(pairs(between, 0.05, 0.005, minority), everybody)
        assert found is not None and found.tolist() == list(range(minority, N))


def test_a_camp_that_agrees_little_within_needs_to_pull_little() -> None:
    """The smaller cosine of both camps counts: attackers cannot raise the bar by agreeing more with each other."""
    made = pairs(-0.01, 0.02, 0.002, FEW)
    made.alike_nn[:FEW, :FEW] += 0.03
    found = opposed_camp(made, torch.arange(N))
    assert found is not None and found.tolist() == list(range(FEW, N))


@pytest.mark.parametrize(
    ("between", "within", "may"), [(-0.005, 0.08, False), (-0.03, 0.08, True), (-0.005, 0.02, True)]
)
def test_a_camp_that_agrees_far_more_may_accuse_the_others_only_if_they_pull_clearly(
    between: float, within: float, may: bool
) -> None:
    """At least 0.3 of the cosine within the accusers, such as attackers who push the same weights: 0.024 of 0.08."""
    made = pairs(between, 0.012, 0.004)
    made.alike_nn[MINORITY:, MINORITY:] += within - 0.012
    found = opposed_camp(made, torch.arange(N))
    assert found is not None and found.tolist() == list(range(MINORITY, N))
    assert may_accuse(made, found, torch.arange(MINORITY)) == may
    trusted = torch.ones(N).index_fill(0, torch.tensor([MINORITY]), N)
    assert may_accuse(replace(made, heads_n=trusted), found, torch.arange(MINORITY))


@pytest.mark.parametrize(("forged", "goes"), [(0, False), (FEW - 1, False), (FEW, True), (18, True), (19, False)])
def test_a_small_camp_beside_as_many_forgers_goes_if_the_others_are_still_most(forged: int, goes: bool) -> None:
    """25 others are more than half of 49 ballots, and half of 50."""
    found = opposed_camp(pairs(-0.01, 0.03, 0.02, FEW, forged), torch.arange(N))
    assert (found.tolist() if found is not None else None) == (list(range(FEW, N)) if goes else None)


def test_a_small_camp_stays_beside_forgers_if_it_pulls_against_a_part_of_the_others() -> None:
    made = pairs(-0.01, 0.03, 0.02, FEW, forged=2 * FEW)
    made.alike_nn[:FEW, -5:] += 0.02
    made.alike_nn[-5:, :FEW] += 0.02
    assert opposed_camp(made, torch.arange(N)) is None


def test_a_small_camp_stays_beside_forgers_if_it_pulls_next_to_nothing() -> None:
    """A quarter of the cosine within both camps: 0.0075 of 0.03."""
    for between, forged, goes in ((-0.006, FEW, False), (-0.0083, 0, False), (-0.0083, FEW, True)):
        found = opposed_camp(pairs(between, 0.03, 0.004, FEW, forged), torch.arange(N))
        assert (found is not None) == goes


@pytest.mark.parametrize(
    ("between", "minority", "goes"),
    [(-0.010, MINORITY, True), (-0.006, MINORITY, False), (-0.010, 7, False)],
    ids=["labels that contradict", "inputs of another kind", "a small camp"],
)
def test_large_camps_that_explain_less_go_if_their_work_nearly_cancels(
    between: float, minority: int, goes: bool
) -> None:
    """As on digits, where clients swap the labels of few classes."""
    found = opposed_camp(pairs(between, 0.014, 0.014, minority), torch.arange(N))
    assert (found.tolist() if found is not None else None) == (list(range(minority, N)) if goes else None)


@pytest.mark.parametrize(("ballots", "goes"), [(30, True), (26, True), (24, False), (21, False)])
def test_the_fewer_ballots_the_more_camps_whose_work_nearly_cancels_have_to_explain(ballots: int, goes: bool) -> None:
    """On CIFAR-10, 10 opponents were left out, and then 8 of the 21 honest clients left were taken for a camp."""
    made, inside = pairs(-0.011, 0.014, 0.014), torch.cat([torch.arange(8), torch.arange(N - ballots + 8, N)])
    assert (opposed_camp(of_these(made, inside), torch.arange(ballots)) is not None) == goes


@pytest.mark.parametrize("noise", [0.004, 0.014], ids=["camps that explain much", "camps that explain less"])
@pytest.mark.parametrize(
    ("minority", "neutral", "goes"), [(15, 0, True), (15, 1, False), (12, 3, True), (12, 4, False)]
)
def test_ballots_of_neither_camp_do_not_decide_which_one_is_larger(
    minority: int, neutral: int, goes: bool, noise: float
) -> None:
    """Clients without the disputed classes: 16 clear members are a majority of 31, and 15 are not."""
    made = pairs(-0.010, 0.014, noise, minority)
    made.alike_nn[N - neutral :], made.alike_nn[:, N - neutral :] = -0.0005, -0.0005
    found = opposed_camp(made, torch.arange(N))
    assert (found is not None and set(range(minority, N - neutral)) <= set(found.tolist())) == goes


def test_a_sudden_dispute_is_decided_by_all_members() -> None:
    """One round is noisy. Who turned together with all others is not neutral."""
    made = pairs(-0.010, 0.014, 0.004, 15)
    made.alike_nn[-1, 15:], made.alike_nn[15:, -1] = 0.001, 0.001
    made.alike_nn[-1, :15], made.alike_nn[:15, -1] = -0.001, -0.001
    assert opposed_camp(made, torch.arange(N)) is None
    found = opposed_camp(replace(made, sudden=True), torch.arange(N))
    assert found is not None and found.tolist() == list(range(15, N))


def test_a_dispute_can_be_sudden_only_after_many_rounds_without_one() -> None:
    everybody, memory = torch.arange(N), no_pairs(N)
    agreed, disputed = pairs(0.014, 0.014, 0.004), pairs(-0.010, 0.014, 0.004)
    for round in range(1, LONG + 2):
        memory = memory | remembered(memory, everybody, agreed.alike_nn)
        assert undisputed_for_long(memory, everybody, agreed, everybody) == (round >= LONG)
        assert not undisputed_for_long(memory, everybody, disputed, everybody)
    assert not undisputed_for_long(no_pairs(2000), everybody, agreed, everybody)  # pairs of so many are not remembered


def in_one_layer(between: float, minority: int = MINORITY, more: float = 0.1) -> Pairs:
    """The smaller group agrees more than the larger one: attackers push in one direction."""
    made = replace(pairs(between, 0.2, 0.1, minority), one_layer=True)
    made.alike_nn[:minority, :minority] += more
    return made


@pytest.mark.parametrize(
    ("between", "minority", "goes"),
    [(-0.12, MINORITY, True), (-0.06, MINORITY, False), (-0.12, 7, False)],
    ids=["work that cancels", "inputs of another kind", "a small camp"],
)
def test_in_one_layer_camps_have_to_be_large_and_their_work_to_cancel(
    between: float, minority: int, goes: bool
) -> None:
    found = opposed_camp(in_one_layer(between, minority), torch.arange(N))
    assert (found.tolist() if found is not None else None) == (list(range(minority, N)) if goes else None)


def test_in_one_layer_who_agrees_with_nobody_stays() -> None:
    """Honest clients who have learned all that a layer can learn have little to say in it."""
    made = in_one_layer(-0.2, more=0.3)
    made.alike_nn[:2], made.alike_nn[:, :2] = -0.001, -0.001
    made.alike_nn[:2, 2:MINORITY], made.alike_nn[2:MINORITY, :2] = 0.001, 0.001
    found = opposed_camp(made, torch.arange(N))
    assert found is not None and found.tolist() == [0, 1, *range(MINORITY, N)]


def test_attackers_who_agree_more_with_each_other_do_not_make_honest_clients_unclear() -> None:
    """Attackers with 16 times the agreement of honest clients: each camp is measured by itself."""
    made = replace(pairs(-0.1, 0.05, 0.02, 15), one_layer=True)
    made.alike_nn[:15, :15] += 0.75
    found = opposed_camp(made, torch.arange(N))
    assert found is not None and found.tolist() == list(range(15, N))


@pytest.mark.parametrize("more", [-0.15, 0.1])
def test_in_one_layer_who_agrees_more_may_not_accuse_the_others(more: float) -> None:
    """Attackers side with a few honest clients there, to be the majority."""
    found = opposed_camp(in_one_layer(-0.15, MINORITY, more), torch.arange(N))
    assert (found is None) == (more < 0)


@pytest.mark.parametrize(
    ("known", "one_layer", "more", "stay_out"),
    [(2, False, 0.0, 2), (2, True, 0.3, 0), (8, True, 0.3, 8), (8, True, 0.1, 0)],
    ids=["whole ballots", "few in one layer", "many in one layer", "honest clients who were left out once"],
)
def test_known_opponents_stay_out_and_in_one_layer_if_they_are_many_and_agree_far_more(
    known: int, one_layer: bool, more: float, stay_out: int
) -> None:
    made = replace(pairs(0.01, 0.2, 0.0, known), one_layer=one_layer)
    made.alike_nn[:known, :known] += more
    found_N = still_opposed(made, torch.arange(N), torch.arange(N) < known)
    assert found_N.tolist() == [client < stay_out for client in range(N)]
