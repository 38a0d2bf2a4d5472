"""The insider does what the rule lets pass, and no less."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Insider, MinMax, Omniscient
from fedvote.attacks.collusion import Flip
from fedvote.attacks.insider import HALVINGS
from fedvote.core import State
from fedvote.engines.simulate import Simulation
from fedvote.errors import ConfigError
from fedvote.methods import FedVote
from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps, Cut, Reputation, Uniform, Verdict
from fedvote.runs.config import read
from fedvote.runs.experiment import federation
from tests.attacks.messages import floats, leaning, sent, votes
from tests.toy import assert_same

N = 4000


def weights(rule: Reputation, hostile_HN: Tensor, honest_GN: Tensor) -> Tensor:
    """What the rule gives to each attacker, all clients being new to it."""
    votes = torch.cat([honest_GN, hostile_HN])  # other places than the attack tries
    ballots = Ballots(votes, torch.arange(len(votes)), torch.zeros(votes.shape[1]), BINARY)
    return rule.judge(rule.init(len(votes)), ballots, Key(0, 7)).soft_K[len(honest_GN) :]


def test_nobody_is_left_out_and_only_votes_against_the_plurality_are_changed() -> None:
    rule = Cut()
    own, honest = leaning(4, N, seed=1), leaning(7, N, seed=2)
    forged = sent(Insider(), own, honest, rule=rule)["votes"]
    assert (weights(rule, forged, honest["votes"]) > 0).all()
    changed, plurality = forged != own["votes"], honest["votes"].sum(0).sign().char()
    assert changed.sum(1).min() > 0 and (forged == -plurality)[changed].all()


def test_a_trusted_client_outside_the_round_changes_nothing() -> None:
    """The clients of the round have numbers below 30."""
    own, honest = leaning(4, N, seed=1), leaning(7, N, seed=2)
    forged, as_without = (sent(Insider(), own, honest, rule=Camps(trusted=trusted))["votes"] for trusted in ((40,), ()))
    assert torch.equal(forged, as_without)


def test_more_flips_would_not_pass() -> None:
    own, honest = leaning(4, N, seed=1), leaning(7, N, seed=2)
    forged = sent(Insider(), own, honest, rule=Camps())["votes"]
    plurality = honest["votes"].sum(0).sign().char()
    more = torch.where(torch.arange(N) % 8 == 0, -plurality, forged)
    assert (weights(Camps(), more, honest["votes"]) == 0).any()


def test_among_fewer_attackers_as_among_many_all_flip_the_same_weights() -> None:
    honest = leaning(9, N, seed=2)
    plurality = honest["votes"].sum(0).sign()
    for attackers in (1, 5):
        own = leaning(attackers, N, seed=3)
        forged = sent(Insider(), own, honest, rule=Camps())["votes"]
        open_to_all = (own["votes"] == plurality).all(0)
        flipped = (forged != own["votes"])[:, open_to_all]
        assert torch.equal(flipped.any(0), flipped.all(0))


@pytest.mark.parametrize("rule", [Uniform(), None], ids=str)
def test_a_rule_that_lets_everything_pass_gets_the_opposite_of_the_plurality(rule: Reputation | None) -> None:
    own, honest = leaning(2, 2 ** (HALVINGS - 1)), leaning(3, 2 ** (HALVINGS - 1), seed=2)
    assert_same(sent(Insider(), own, honest, rule=rule), sent(Omniscient(), own, honest))


@pytest.mark.parametrize("flip", ["weakest", "strongest"])
def test_votes_are_flipped_where_the_plurality_leads_by_least_or_by_most(flip: Flip) -> None:
    own, honest = leaning(4, N, seed=1), leaning(7, N, seed=2)
    lead = honest["votes"].sum(0).abs()
    changed = (sent(Insider(flip=flip), own, honest, rule=Camps())["votes"] != own["votes"]).any(0)
    mean, others = lead[changed].float().mean(), lead[~changed].float().mean()
    assert mean < others - 1 if flip == "weakest" else mean > others + 1


@dataclass(frozen=True)
class OneOfThem(Uniform):
    """Leaves one client out as soon as two ballots are the same."""

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        verdict = super().judge(memory, ballots, key)
        same = len(ballots.votes_KD.unique(dim=0)) < len(ballots.votes_KD)
        verdict.soft_K[0] = 0.0 if same else 1.0
        return verdict


def test_one_attacker_that_is_left_out_is_one_too_many() -> None:
    """Their ballots differ until all votes are flipped: so one is not."""
    own, honest = votes([1, 1, 1, -1], [1, 1, -1, 1]), votes([1, 1, 1, 1], [-1, 1, 1, 1], [1, -1, 1, 1])
    forged = sent(Insider(), own, honest, rule=OneOfThem())["votes"]
    assert not torch.equal(forged[0], forged[1]) and int((forged == -1).sum()) > int((own["votes"] == -1).sum())


def test_floats_are_pushed_as_in_min_max() -> None:
    honest = floats([1.0, 5.0, 0.0], [3.0, 5.0, 1.0])
    assert_same(sent(Insider(), honest, honest), sent(MinMax(), honest, honest))


@dataclass(frozen=True)
class Noted(Camps):
    """Counts how often it is asked."""

    asked: list[int] = field(default_factory=list, compare=False)

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        self.asked.append(len(ballots.votes_KD))
        return super().judge(memory, ballots, key)


def test_the_rule_that_it_tries_is_the_servers_own() -> None:
    rule = Noted()
    made = federation(
        read("quickstart", ["attack=insider", "federation.hostile=4", "local.steps=1", "rounds=1"]), "cpu"
    )
    assert isinstance(made.method, FedVote)
    list(Simulation(replace(made, method=replace(made.method, reputation=rule))))
    assert rule.asked == [11] * (HALVINGS + 1)  # and once by the server


def test_which_votes_are_flipped_is_one_of_two_words() -> None:
    assert read("quickstart", ["attack=insider", "attack.flip=strongest"]).attack == Insider("strongest")
    with pytest.raises(ConfigError, match=re.escape("flip is 'most', expected one of: weakest, strongest")):
        Insider(flip="most")  # type: ignore[arg-type]


def test_an_insider_knows_the_numbers_by_which_all_clients_round_so_that_the_server_finds_what_it_found() -> None:
    settings = ["rounds=1", "method.reputation=camps", "attack=insider", "federation.hostile=3", "local.steps=5"]
    planned = federation(read("quickstart", settings), "cpu", None)
    *_, snapshot = Simulation(planned).run(None)
    weights = {int(client): weight for client, weight in snapshot.record["vote_weight"].items()}
    assert all(weights[client] > 0 for client in planned.hostile)
