"""What each attack sends, on three weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedvote.attacks import (
    Attack,
    Copycat,
    DisagreeingCopycat,
    Inverse,
    LabelFlip,
    Ladder,
    Layer,
    LowAgreement,
    Nothing,
    Omniscient,
    Partial,
    PartTime,
    Random,
    Seen,
    Sleeper,
    Team,
    VulnerableVotes,
)  # fmt: skip
from fedvote.attacks.attack import narrowed
from fedvote.attacks.collusion import flips
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from tests.attacks.messages import KEYS, leaning, many, sent, votes
from tests.toy import assert_same


def test_nothing_is_nothing() -> None:
    own = votes([1, -1, 1], [1, 1, -1])
    assert_same(sent(Nothing(), own), own)


def test_inverse_turns_every_sign_round_and_leaves_scalars() -> None:
    own = {"signs": torch.tensor([[1, 0, -1], [-1, -1, 0]], dtype=torch.int8), "norm": torch.tensor([[2.0], [3.0]])}
    wanted = {"signs": torch.tensor([[-1, 0, 1], [1, 1, 0]], dtype=torch.int8), "norm": own["norm"]}
    assert_same(sent(Inverse(), own), wanted)
    updates = {"voted": torch.tensor([[0.5, -2.0], [1.0, 3.0]])}
    assert_same(sent(Inverse(), updates), {"voted": torch.tensor([[-0.5, 2.0], [-1.0, -3.0]])})


@pytest.mark.parametrize("attack", [Inverse(), Omniscient(), Partial(1.0), Sleeper(1)], ids=lambda a: type(a).__name__)
def test_models_are_turned_about_what_was_broadcast(attack: Attack) -> None:
    """Their mean after the attack is as far from the start as before, on the other side."""
    start = torch.tensor([10.0, -3.0])
    models = {"voted": start + torch.tensor([[0.5, -2.0], [1.0, 3.0]])}
    forged = sent(attack, models, models, unmoved={"voted": start})["voted"]
    torch.testing.assert_close(forged.mean(0) - start, start - models["voted"].mean(0))


def test_random_models_are_about_what_was_broadcast() -> None:
    start = 100 * torch.randn(5000, generator=Key(3).torch("start"))
    models = {"voted": start + 3 + 0.5 * torch.randn(2, 5000, generator=Key(2).torch("weights"))}
    noise = sent(Random(), models, unmoved={"voted": start})["voted"] - start
    assert float(noise.mean()) == pytest.approx(3, abs=0.05) and float(noise.std()) == pytest.approx(0.5, abs=0.02)


def test_inverse_turns_signs_round_once_whatever_scales_them() -> None:
    """Signs and their scales both turned round would be what was there before."""
    own = {"signs": torch.tensor([[1, -1, 1, -1]], dtype=torch.int8), "scale": torch.tensor([[2.0, 3.0]])}
    inverted = sent(Inverse(), own, scales=("scale",))
    assert_same(inverted, {"signs": -own["signs"], "scale": own["scale"]})


def test_label_flip_mirrors_the_classes() -> None:
    labels = torch.tensor([[0, 9, 4], [1, 5, 8]])
    assert LabelFlip().poison(labels, 10, KEYS).tolist() == [[9, 0, 5], [8, 4, 1]]
    assert LabelFlip().poison(torch.arange(5), 5, KEYS).tolist() == [4, 3, 2, 1, 0]


def test_label_flip_of_few_classes_leaves_the_others() -> None:
    labels = torch.arange(10)
    assert LabelFlip(swaps=1).poison(labels, 10, KEYS).tolist() == [9, *range(1, 9), 0]
    assert LabelFlip(swaps=99).poison(labels, 10, KEYS).tolist() == LabelFlip().poison(labels, 10, KEYS).tolist()
    drawn, all_drawn = (LabelFlip("random", swaps).poison(labels, 10, KEYS) for swaps in (2, 0))
    changed = drawn != labels
    assert int(changed.sum()) == 4 and torch.equal(drawn[changed], all_drawn[changed])
    assert LabelFlip(one_way=True).poison(labels, 10, KEYS).tolist() == [9, 8, 7, 6, 5, 5, 6, 7, 8, 9]
    assert LabelFlip(swaps=1, one_way=True).poison(labels, 10, KEYS).tolist() == [9, *range(1, 10)]
    with pytest.raises(ConfigError, match="swaps is -1, expected a number of pairs"):
        LabelFlip(swaps=-1)


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_random_pairs_swap_classes_two_by_two_the_same_way_for_all(classes: int) -> None:
    attack, labels = LabelFlip(pairs="random"), torch.arange(classes).expand(2, -1)
    swapped = attack.poison(labels, classes, KEYS)
    assert torch.equal(swapped[0], swapped[1]) and torch.equal(attack.poison(swapped, classes, KEYS), labels)
    assert int((swapped[0] == labels[0]).sum()) == classes % 2
    assert torch.equal(attack.poison(labels, classes, [Key(0, 8, 1)]), swapped)  # and in every round


def test_random_votes_are_fair_coins_of_the_same_alphabet() -> None:
    for values in ([-1, 1], [-1, 0, 1]):
        noise = sent(Random(), many(values))["votes"]
        for value in values:
            assert float((noise == value).float().mean()) == pytest.approx(1 / len(values), abs=0.03)
        assert not torch.equal(noise[0], noise[1])


def test_random_levels_are_as_large_as_those_that_it_would_have_sent_with_any_sign() -> None:
    own = {**many([0, 0, 0, 0, 0, 0, 0, 3]), "norm": torch.ones(2, 1)}
    noise = sent(Random(), own, scales=("norm",))["votes"].float()
    assert ((noise == 0) | (noise.abs() == 3)).all() and noise.mean().abs() < 0.1
    assert float(noise.norm()) == pytest.approx(float(own["votes"].float().norm()), rel=0.1)


def test_random_updates_share_mean_and_deviation_with_honest_ones() -> None:
    own = {"voted": 3 + 0.5 * torch.randn(2, 5000, generator=Key(2).torch("weights"))}
    noise = sent(Random(), own)["voted"]
    assert float(noise.mean()) == pytest.approx(3, abs=0.05) and float(noise.std()) == pytest.approx(0.5, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack([noise[0], own["voted"][0]]))[0, 1])) < 0.06


def test_omniscient_sends_minus_the_honest_plurality_from_every_attacker() -> None:
    honest = votes([1, 1, -1], [1, -1, -1], [1, -1, 1])
    assert_same(sent(Omniscient(), votes([1, 1, 1], [1, 1, 1]), honest), votes([-1, 1, 1], [-1, 1, 1]))
    floats = {"voted": torch.tensor([[1.0, 2.0], [3.0, -6.0]])}
    assert_same(sent(Omniscient(), floats, floats), {"voted": torch.tensor([[-2.0, 2.0], [-2.0, 2.0]])})


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_partial_inverts_its_share(share: float) -> None:
    own = many([-1, 1])
    flipped = sent(Partial(share), own)["votes"] != own["votes"]
    assert float(flipped.float().mean()) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(("victims", "share"), [(1, 1.0), (3, 1.0), (2, 0.25)])
def test_copycats_send_votes_of_their_victims_until_they_turn(victims: int, share: float) -> None:
    own, honest = (
        (2 * torch.randint(2, (n, 4000), generator=Key(n).torch("votes")) - 1).to(torch.int8) for n in (3, 5)
    )
    attack = Copycat(victims=victims, share=share, wakes=3)
    seen = Seen({"votes": own}, {"votes": honest}, [Key(0, 2, c) for c in range(3)], 8)
    sent = attack.tamper(seen)["votes"]
    theirs = torch.stack([sent == row for row in honest[:victims]]).any(0)
    assert bool((theirs | (sent == own)).all())
    taken = [float((sent == row).double().mean()) for row in honest[:victims]]
    assert max(taken) - min(taken) < 0.1, "from one as often as from another"
    if share == 1:
        assert bool(theirs.all()) and torch.equal(sent, sent[:1].expand_as(sent))
    else:  # a vote of its own agrees with one of two others in three of four cases
        assert float(theirs.double().mean()) == pytest.approx(share + (1 - share) * 0.75, abs=0.03)
    turned = replace(seen, keys=[Key(0, 3, c) for c in range(3)])
    assert torch.equal(attack.tamper(turned)["votes"], Omniscient().tamper(turned)["votes"])


def test_a_sleeper_wakes_in_its_round() -> None:
    own = votes([1, -1, 1], [1, 1, -1])
    assert_same(sent(Sleeper(wakes=8), own, round=7), own)
    assert_same(sent(Sleeper(wakes=8), own, round=8), sent(Inverse(), own))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LabelFlip(pairs="all"), "pairs is 'all', expected one of: mirror, random"),  # type: ignore[arg-type]
        (lambda: Sleeper(wakes=0), "wakes is 0, expected 1 or more"),
        (lambda: Copycat(victims=0), "victims is 0, expected 1 or more"),
        (lambda: Copycat(share=2), "share is 2.0, expected a number from 0 to 1"),
        (lambda: Partial(1.5), "share is 1.5, expected a number from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, sentence: str) -> None:
    assert callable(make)
    with pytest.raises(ConfigError, match=sentence):
        make()


def test_layer_inverts_the_first_layer_or_named_ones_or_a_share_of_them() -> None:
    own = votes([1, -1, 1, 1, -1], [1, 1, -1, 1, 1])  # two weights in the first layer, three in the second
    assert_same(sent(Layer(), own), votes([-1, 1, 1, 1, -1], [-1, -1, -1, 1, 1]))
    assert_same(sent(Layer(("sec*",)), own), votes([1, -1, -1, -1, 1], [1, 1, 1, -1, -1]))
    half = sent(Layer(share=0.5), own)["votes"] != own["votes"]
    assert half.sum(1).tolist() == [1, 1] and torch.equal(half[0], half[1]), "the same weight for all"
    with pytest.raises(ConfigError, match="expected names among: first, second"):
        sent(Layer(("third",)), own)


def test_low_agreement_is_against_the_plurality_where_it_leads_by_least() -> None:
    """Leads of 3, 1 and 3 votes of three; a third of three weights is one."""
    honest = votes([1, 1, -1], [1, -1, -1], [1, 1, -1])
    assert_same(sent(LowAgreement(1 / 3), votes([1, 1, -1], [-1, 1, -1]), honest), votes([1, -1, -1], [-1, -1, -1]))


def test_each_rung_of_a_ladder_goes_further_than_the_last() -> None:
    own, honest = leaning(4), leaning(5, seed=2)
    changed = (sent(Ladder(0.4), own, honest)["votes"] != own["votes"]).sum(1)
    assert (changed.diff() > 0).all()
    _, against, order = flips(honest["votes"], Key(0, 7), "weakest")
    forged = sent(Ladder(0.4), own, honest)["votes"]
    for rung, count in enumerate((40, 80, 120, 160)):
        assert torch.equal(forged[rung, order[:count]], against[order[:count]])
        assert torch.equal(forged[rung, order[count:]], own["votes"][rung, order[count:]])


def test_vulnerable_votes_overturn_what_can_be_overturned_by_as_few_votes_as_do() -> None:
    own, honest = leaning(3), leaning(5, seed=2)
    forged = sent(VulnerableVotes(), own, honest)["votes"]
    lead, total = honest["votes"].sum(0), honest["votes"].sum(0) + forged.sum(0)
    possible = lead.abs() < 3
    assert (total[possible] * lead[possible] < 0).all() and (total[possible].abs() <= 2).all()
    assert torch.equal(forged[:, ~possible], own["votes"][:, ~possible])
    assert ((forged != own["votes"]).sum(0)[possible] < 3).any(), "not all of them change their votes"


def test_disagreeing_copycats_copy_only_votes_that_disagree_with_the_numbers_of_their_sender() -> None:
    soft, keys = torch.rand(4000, generator=Key(1).torch("soft")) - 0.5, [Key(0, 2, client) for client in (7, 8)]
    expected = round_by_shared_random(soft.expand(2, -1), BINARY, keys)
    honest = torch.where(torch.rand(2, 4000, generator=Key(2).torch("moved")) < 0.2, -expected, expected)
    own = many([-1, 1], 3)["votes"]
    seen = Seen(
        {"votes": own}, {"votes": honest}, [Key(0, 2, c) for c in range(3)], 5, {"votes": soft}, honest_keys=keys
    )
    forged = DisagreeingCopycat(wakes=3).tamper(seen)["votes"]
    apart = honest[0] != expected[0]
    assert torch.equal(forged[:, apart], honest[:1, apart].expand(3, -1))
    assert torch.equal(forged[:, ~apart], own[:, ~apart])


def test_part_time_attackers_are_honest_in_between_and_late_ones_before() -> None:
    own = votes([1, -1, 1], [1, 1, -1])
    rounds = {round: not torch.equal(sent(PartTime(Inverse(), 3, 4), own, own, round=round)["votes"], own["votes"])
              for round in range(1, 12)}  # fmt: skip
    assert [round for round, attacks in rounds.items() if attacks] == [4, 7, 10]
    labels = torch.tensor([[0, 9]])
    assert PartTime(LabelFlip(), 3, 4).poison(labels, 10, [Key(0, 5, 1)]).tolist() == [[0, 9]]
    assert PartTime(LabelFlip(), 3, 4).poison(labels, 10, [Key(0, 4, 1)]).tolist() == [[9, 0]]


def test_a_team_divides_its_attacks_by_the_numbers_of_its_clients() -> None:
    """Clients 3 and 5 of the team: the first inverts, the third poisons labels and votes honestly."""
    own, team = votes([1, -1, 1], [1, 1, -1]), Team(Inverse(), Omniscient(), LabelFlip())
    assert_same(sent(team, own, own), votes([-1, 1, -1], [1, 1, -1]))
    keys = [Key(0, 7, client) for client in (3, 5)]
    assert team.poison(torch.tensor([[0, 9], [0, 9]]), 10, keys).tolist() == [[0, 9], [9, 0]]


def test_an_attack_inside_another_is_shown_what_it_declares_to_know_and_no_more() -> None:
    own, honest = votes([1, -1, 1], [1, 1, -1]), votes([1, 1, 1])
    seen = Seen(own, honest, KEYS, 3, honest_keys=[Key(0, 7, 1)])
    assert not narrowed(seen, Inverse()).honest and not narrowed(seen, Omniscient()).honest_keys
    assert narrowed(seen, DisagreeingCopycat(), [1]).keys == KEYS[1:] and narrowed(seen, Omniscient()).honest == honest
