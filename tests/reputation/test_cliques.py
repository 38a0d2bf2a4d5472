"""Which small groups of clients are a clique."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fedvote import ConfigError
from fedvote.core import State
from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Camps, Verdict, cliques
from fedvote.reputation.camps import CLIQUE
from fedvote.reputation.cliques import clique, deviations_beside, slope, tightest_group, usual_deviations
from tests.reputation.cast_ballots import GOAL, LESSONS, SOFT, D, N, ballots, mixtures

LAYERS = (2_000, 8_000, 10_000)
FRONT = torch.arange(D) < 10_000  # the weights before the last layer
TRIGGER = 0.2 * torch.randn(D, generator=Key(1).torch("trigger"))  # what is learnt from a trigger, or from a rare class
TRIO, SIX = (4, 11, 23), range(6)


def cast(group: Sequence[int], where: Tensor, round: int, alphabet: Alphabet = BINARY) -> Tensor:
    """The ballots of all clients; a group learns something of its own in some of the weights."""
    own_ND = 0.15 * torch.randn(N, D, generator=Key(1, round).torch("own"))
    moved_ND = SOFT + mixtures(N, 0) @ LESSONS + GOAL + own_ND
    moved_ND[list(group)] += TRIGGER * where
    return round_by_shared_random(moved_ND.clamp(-1, 1), alphabet, [Key(0, round, client) for client in range(N)])


def judged(
    group: Sequence[int], where: Tensor, rounds: int = 3, share: float = 0.1, alphabet: Alphabet = BINARY,
    layers: tuple[int, ...] = LAYERS, order: Sequence[int] = range(N),
) -> tuple[Verdict, dict[int, str]]:  # fmt: skip
    """The verdict of the last round, and why clients were left out of any."""
    rule, why, everybody = Camps(clique=share), dict[int, str](), list(order)
    memory = rule.init(N)
    for round in range(1, rounds + 1):
        votes_KD = cast(group, where, round, alphabet)[everybody]
        verdict = rule.judge(memory, ballots(votes_KD, everybody, alphabet, layers), Key(0, round))
        out = torch.tensor(everybody)[verdict.soft_K == 0].tolist()
        why |= rule.reasons(memory, verdict.memory, out)
        memory = verdict.memory
    return verdict, why


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_a_trio_that_agrees_before_the_last_layer_alone_is_left_out_from_round_three_on(alphabet: Alphabet) -> None:
    assert judged(TRIO, FRONT, rounds=2, alphabet=alphabet)[1] == {}
    assert judged(TRIO, FRONT, alphabet=alphabet)[1] == dict.fromkeys(TRIO, CLIQUE)


def test_a_trio_that_agrees_in_all_layers_stays() -> None:
    """Clients with the same rare class."""
    assert judged(TRIO, torch.ones(D))[1] == {}


def test_a_trio_that_agrees_in_the_last_layer_alone_stays() -> None:
    assert judged(TRIO, ~FRONT)[1] == {}


def test_a_network_of_one_voted_layer_has_no_cliques() -> None:
    assert judged(TRIO, FRONT, layers=(D,))[1] == judged(TRIO, FRONT, layers=())[1] == {}


@pytest.mark.parametrize(("share", "left_out"), [(0.1, []), (0.25, list(SIX))])
def test_a_larger_group_stays_unless_the_share_of_a_clique_allows_for_it(share: float, left_out: list[int]) -> None:
    assert sorted(judged(SIX, FRONT, share=share)[1]) == left_out


def agreement_of(trio: float, others: float) -> State:
    """The memory of pairs along a line. A trio with the same rare classes lies at its end, and above it; three others,
    in its middle, above it as well."""
    generator = Key(3).torch("pairs")
    back_NN = 0.1 * torch.randn(N, N, generator=generator)
    above_NN = 0.05 * torch.randn(N, N, generator=generator)
    for members, back, above in ((TRIO, 0.45, trio), ((1, 2, 3), 0.0, others)):
        for first in members:
            for second in members:
                back_NN[first, second], above_NN[first, second] = back, above
    rounds_NN = torch.full((N, N), 5.0)
    return {"front": (2 * back_NN + above_NN) * rounds_NN, "back": back_NN * rounds_NN, "together": rounds_NN}


def test_a_group_has_to_stand_out_beyond_the_line_as_well() -> None:
    """Honest clients with the same two classes agree more than others before the last layer, but along the line."""
    found = clique(agreement_of(trio=0.3, others=0.0), torch.arange(N), 3)
    assert found is not None and found.tolist() == sorted(TRIO)
    assert clique(agreement_of(trio=0.3, others=0.2), torch.arange(N), 3) is None
    assert clique(agreement_of(trio=0.0, others=0.0), torch.arange(N), 3) is None


def test_no_share_no_clique() -> None:
    assert judged(TRIO, FRONT, share=0)[1] == {}


def test_the_verdict_does_not_depend_on_the_order_of_the_clients() -> None:
    order = torch.randperm(N, generator=Key(2).torch("order")).tolist()
    verdict, why = judged(TRIO, FRONT)
    turned, also_why = judged(TRIO, FRONT, order=order)
    assert torch.equal(turned.soft_K, verdict.soft_K[order]) and also_why == why
    for name, value in verdict.memory.items():
        torch.testing.assert_close(turned.memory[name], value)


def test_a_clique_that_repents_is_none_for_long() -> None:
    """A mark of a round, not of a client: it goes with the round."""
    rule, memory, marked = Camps(), Camps().init(N), []
    for round in range(1, 21):
        votes_KD = cast(TRIO if round < 5 else (), FRONT, round)
        memory = rule.judge(memory, ballots(votes_KD, range(N), layers=LAYERS), Key(0, round)).memory
        marked.append(memory["clique"].nonzero()[:, 0].tolist())
    assert marked[3] == list(TRIO) and marked[-1] == []


@pytest.mark.parametrize("share", [-1.0, -1e-9, 0.5, 1.0, float("inf"), float("nan")])
def test_a_share_that_is_none_or_half_of_the_clients_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=f"clique is {share}, expected a share of the clients, from 0 to less"):
        Camps(clique=share)


def planted(clients: int, group: Sequence[int], rounds: int = 4) -> State:
    """A memory of pairs that agree by chance, but a group agrees before the last layer."""
    drawn = torch.randn(2, clients, clients, generator=Key(3, clients).torch("pairs")).triu(1)
    front_NN, back_NN = drawn + drawn.mT
    rows = torch.tensor(list(group), dtype=torch.int64)
    front_NN[rows[:, None], rows] += 20
    together = sum(0.9**age for age in range(rounds))
    return {"front": together * front_NN, "back": together * back_NN, "together": torch.full_like(back_NN, together)}


def found(memory: State, most: int) -> list[int] | None:
    rows = clique(memory, torch.arange(len(memory["front"])), most)
    return None if rows is None else rows.tolist()


@pytest.mark.parametrize("clients", [20, 31, 101, 1000])
def test_a_planted_group_is_found_among_few_and_many_clients(clients: int) -> None:
    group = list(range(3, 3 + clients // 10))
    assert found(planted(clients, group), len(group)) == group
    assert found(planted(clients, group), len(group) - 1) is None
    assert found(planted(clients, group, rounds=2), len(group)) is None
    assert found(planted(clients, []), len(group)) is None


def in_proportion(same_classes: Sequence[int], group: Sequence[int] = (), rounds: int = 4) -> State:
    """A memory of pairs that agree before the last layer in proportion to their agreement in it.

    Few pairs agree as much as those with the same rare classes. A group agrees before the last layer alone.
    """
    drawn = torch.randn(2, N, N, generator=Key(4).torch("pairs")).triu(1)
    noise_NN, back_NN = 0.3 * (drawn[0] + drawn[0].mT), 0.01 * (drawn[1] + drawn[1].mT)
    rows, members = torch.tensor(list(same_classes)), torch.tensor(list(group), dtype=torch.int64)
    back_NN[rows[:, None], rows] += 0.1
    front_NN = 30 * back_NN + noise_NN
    front_NN[members[:, None], members] += 3
    together = sum(0.9**age for age in range(rounds))
    return {"front": together * front_NN, "back": together * back_NN, "together": torch.full_like(back_NN, together)}


def test_honest_clients_with_the_same_rare_classes_stay() -> None:
    """Only their agreement in the last layer is far from all others': before it they agree in proportion."""
    memory = in_proportion(TRIO)
    assert found(memory, 3) is None
    memory["back"] = torch.where(memory["back"].abs() > 0.1, 0.0, memory["back"])  # what would show without the line
    assert found(memory, 3) == list(TRIO)


def test_a_clique_is_found_where_agreement_rises_with_shared_classes() -> None:
    assert found(in_proportion(TRIO, TRIO), 3) == list(TRIO)


@pytest.mark.parametrize("opposite", [-0.2, -0.5, -1.0])
def test_two_clients_who_disagree_in_the_last_layer_alone_stay(opposite: float) -> None:
    """Their usual agreement before it is far above the line, which ends where pairs end."""
    memory = in_proportion(TRIO[:1])
    memory["back"][4, 9] = memory["back"][9, 4] = opposite * memory["together"][4, 9]
    assert found(memory, 3) is None


def test_clients_without_innovations_in_the_last_layer_do_not_turn_the_line() -> None:
    """Nothing says how much they agree there: their pairs are not remembered."""
    rule, memory = Camps(), Camps().init(N)
    votes_KD, idle = cast((), FRONT, 1), range(20, N)
    untrained_KD = round_by_shared_random(SOFT.expand(len(idle), -1), BINARY, [Key(0, 1, client) for client in idle])
    votes_KD[list(idle)] = torch.where(FRONT, votes_KD[list(idle)], untrained_KD)
    together_NN = rule.judge(memory, ballots(votes_KD, range(N), layers=LAYERS), Key(0, 1)).memory["together"]
    assert bool(together_NN[:20, :20].any()) and not bool(together_NN[20:].any())


def test_a_few_pairs_do_not_turn_the_line_that_others_follow() -> None:
    back_p = torch.randn(465, generator=Key(5).torch("pairs"), dtype=torch.float64)
    front_p = 30 * back_p
    front_p[:45] += 1e6
    assert slope(front_p, back_p) == pytest.approx(30, rel=0.2)
    assert slope(front_p, torch.ones(465)) == 0  # no line


def test_among_fewer_than_twenty_ballots_there_are_no_cliques() -> None:
    assert found(planted(19, TRIO[:2]), 2) is None


@pytest.mark.parametrize(("share", "left_out"), [(0.29, 29), (0.28, 0)])
def test_a_group_of_exactly_the_share_is_left_out(share: float, left_out: int) -> None:
    """0.29 * 100 is 28.999... in floating point."""
    memory, everybody = planted(100, range(29)), torch.arange(100)
    assert len(Camps(clique=share).alone(memory, everybody, everybody, 100)) == left_out


@pytest.mark.parametrize("forgers", [2, 4])
def test_forgers_who_are_left_out_hide_no_trio(forgers: int) -> None:
    """A clique may have a tenth of the round's ballots, not of those that remain."""
    memory, rule, left_out = Camps().init(N), Camps(), set[int]()
    for round in range(1, 5):
        votes_KD = cast(TRIO, FRONT, round)
        votes_KD[-forgers:] *= -1
        verdict = rule.judge(memory, ballots(votes_KD, range(N), layers=LAYERS), Key(0, round))
        left_out |= set((verdict.soft_K == 0).nonzero()[:, 0].tolist())
        memory = verdict.memory
    assert left_out == {*TRIO, *range(N - forgers, N)}


def test_the_rows_of_a_part_of_the_clients_are_theirs() -> None:
    """Clients 30, 29, ... 0 without 10 to 15: client 4 is the last row but four."""
    cohort = torch.tensor([client for client in reversed(range(N)) if not 10 <= client < 16])
    rows = clique(planted(N, (4, 23)), cohort, 2)
    assert rows is not None and cohort[rows].tolist() == [23, 4]


def test_the_tightest_group_has_the_largest_score() -> None:
    """Clients 0, 1, 2 have z = 4, 5, 6, and the score 15 / sqrt 3; 3 and 4 have z = 8."""
    z_nn = torch.zeros(7, 7, dtype=torch.float64)
    for one, other, z in ((0, 1, 4.0), (0, 2, 5.0), (1, 2, 6.0), (3, 4, 8.0)):
        z_nn[one, other] = z_nn[other, one] = z
    score, rows = tightest_group(z_nn, 3)
    assert score == pytest.approx(15 / 3**0.5) and rows.tolist() == [0, 1, 2]
    assert tightest_group(z_nn, 2)[0] == 8 and tightest_group(z_nn, 2)[1].tolist() == [3, 4]


def test_a_pair_is_compared_with_those_that_agree_as_much_in_the_last_layer() -> None:
    """Half of the pairs agree in both; one of the others agrees before the last layer as much as these do."""
    back_p = torch.cat([torch.linspace(0, 0.1, 100), torch.linspace(0.9, 1, 100)]).double()
    front_p = back_p + 0.01 * torch.randn(200, generator=Key(4).torch("pairs"), dtype=torch.float64)
    front_p[50] = 1.0
    z_p = deviations_beside(front_p, back_p)
    assert z_p[50] > 30 and z_p[torch.arange(200) != 50].abs().max() < 5


def test_of_many_pairs_some_windows_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    front_p, back_p = torch.randn(2, 5050, generator=Key(5).torch("pairs"), dtype=torch.float64)
    all_p = deviations_beside(front_p + back_p, back_p)
    monkeypatch.setattr(cliques, "LOOKED_AT", 2**18)
    torch.testing.assert_close(deviations_beside(front_p + back_p, back_p), all_p, rtol=0, atol=0.1)


def test_where_most_pairs_have_nothing_in_common_nothing_is_unusual() -> None:
    """A layer in which few clients have innovations."""
    alike_nn = torch.eye(9, dtype=torch.float64)
    alike_nn[2, 5] = alike_nn[5, 2] = 0.3
    assert torch.equal(usual_deviations(alike_nn), torch.zeros(9, 9, dtype=torch.float64))
    front_p = torch.zeros(36, dtype=torch.float64).index_fill(0, torch.tensor(7), 0.3)
    assert not deviations_beside(front_p, torch.linspace(0, 1, 36)).any()


def test_two_clients_with_one_innovation_in_a_layer_where_nobody_else_has_any_stay() -> None:
    """Of the first layer's 40 weights, one moves in one round."""
    rule, memory = Camps(), Camps().init(N)
    for round in range(1, 6):
        votes_KD = cast((), FRONT, round)
        untrained_KD = round_by_shared_random(SOFT.expand(N, -1), BINARY, [Key(0, round, c) for c in range(N)])
        votes_KD[:, :40] = untrained_KD[:, :40]
        if round == 3:
            weight = int((untrained_KD[4, :40] == untrained_KD[11, :40]).nonzero()[0])
            votes_KD[[4, 11], weight] *= -1
        verdict = rule.judge(memory, ballots(votes_KD, range(N), layers=(40, 9_960, 10_000)), Key(0, round))
        memory = verdict.memory
        assert torch.equal(verdict.soft_K, torch.ones(N))
    assert memory["front"].abs().max() < 1000


def test_pairs_of_ballots_without_innovations_are_not_remembered_and_hide_no_trio() -> None:
    rule, memory, idle = Camps(), Camps().init(N), [0, 1, 2]
    for round in range(1, 4):
        votes_ND = cast(TRIO, FRONT, round)
        votes_ND[idle] = round_by_shared_random(SOFT.expand(3, -1), BINARY, [Key(0, round, client) for client in idle])
        verdict = rule.judge(memory, ballots(votes_ND, range(N), BINARY, LAYERS), Key(0, round))
        memory = verdict.memory
    assert not memory["together"][idle].any() and not memory["together"][:, idle].any()
    assert (verdict.soft_K == 0).nonzero()[:, 0].tolist() == list(TRIO)


@pytest.mark.parametrize("group", [(3, 8, 20), ()])
def test_clients_that_nobody_has_met_are_no_clique_and_hide_none(group: tuple[int, ...]) -> None:
    memory = planted(31, group)
    for name in ("front", "back", "together"):
        memory[name][[5, 6]] = 0
        memory[name][:, [5, 6]] = 0
    assert found(memory, 3) == (list(group) or None)
