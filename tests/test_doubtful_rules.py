"""A rule that cannot do its work, and levels that round nothing, are doubts before the first round."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import fedvote
from fedvote import Doubt
from fedvote.core import Dataset
from fedvote.engines.simulate import simulate
from fedvote.influence import Agreement
from fedvote.methods import FedVote
from fedvote.reputation import Camps, Cut, OracleCut, Reputation
from tests.toy import dataset, module


def doubts(method: FedVote, data: Dataset | None = None, **knobs: Any) -> list[str]:
    network = module() if data is None else nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, len(data.classes)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Doubt)
        simulate(network, data or dataset(), method, steps=1, batch=8, device="cpu", **knobs)
    return [str(each.message) for each in caught]


FORGED, LABELS = "4 or more to find a forged ballot", "7 or more to find wrong labels"


@pytest.mark.parametrize(
    ("clients", "opponents", "missed"),
    [
        (3, True, f"{FORGED} and {LABELS}"),
        (3, False, FORGED),
        (4, True, LABELS),
        (4, False, ""),
        (6, True, LABELS),
        (7, True, ""),
    ],
)
def test_a_round_of_too_few_ballots_for_the_rule_is_a_doubt(clients: int, opponents: bool, missed: str) -> None:
    advice = "so such votes count; take more clients, or a larger cohort"
    said = [f"a round has {clients} clients: Camps needs {missed}, {advice}"] if missed else []
    assert doubts(FedVote(reputation=Camps(opponents=opponents)), clients=clients) == said
    assert doubts(FedVote(reputation=Cut()), clients=clients) == doubts(FedVote(), clients=clients) == []


@pytest.mark.parametrize(("hostile", "warned"), [(3, False), (4, True)])
def test_attackers_with_half_of_the_votes_are_a_doubt_where_a_rule_trusts_the_majority(
    hostile: int, warned: bool
) -> None:
    said = [f"hostile is {hostile} of 8 clients: Camps trusts the majority, expected fewer than half"]
    team: dict[str, Any] = {"clients": 8, "attack": "inverse", "hostile": hostile}
    assert doubts(FedVote(reputation=Camps()), **team) == said * warned
    assert doubts(FedVote(reputation=Camps()), **team, oracle=True) == doubts(FedVote(), **team) == []


@pytest.mark.parametrize(("trusted", "warned"), [((), False), ((4,), True), ((0, 4), True), ((0, 2, 4), False)])
def test_so_few_trusted_clients_that_no_forged_ballot_is_found_beside_them_are_a_doubt(
    trusted: tuple[int, ...], warned: bool
) -> None:
    said = [f"Camps trusts {len(trusted)} of 8 clients: expected 3 or more, or none"]
    assert doubts(FedVote(reputation=Camps(trusted=trusted)), clients=8) == said * warned


def test_a_yardstick_that_is_told_another_number_of_attackers_is_a_doubt() -> None:
    team: dict[str, Any] = {"clients": 6, "attack": "inverse", "hostile": 2}
    (said,) = doubts(FedVote(reputation=OracleCut()), **team)
    assert said.startswith("attackers of OracleCut is 0, but hostile is 2: ")
    assert doubts(FedVote(reputation=OracleCut(attackers=2)), **team) == []


def test_a_rule_that_looks_for_opponents_is_a_doubt_where_data_have_two_classes() -> None:
    """Honest clients with mostly one class pull against those with the other."""

    def doubts_about(rule: Reputation, classes: int) -> list[str]:
        x, y = torch.arange(240.0).view(120, 2), torch.arange(120) % classes
        return doubts(FedVote(reputation=rule), fedvote.from_arrays(x, y, x, y, standardise=True), clients=8)

    (said,) = doubts_about(Camps(), 2)
    assert said.startswith("the data have two classes: ") and "set opponents = false" in said
    assert doubts_about(Camps(), 3) == doubts_about(Camps(opponents=False), 2) == doubts_about(Cut(), 2) == []


def test_more_levels_than_equal_votes_have_are_a_doubt() -> None:
    (said,) = doubts(FedVote(levels=7), clients=5)
    assert said == "levels is 7, but 5 equal votes have 6, so they are not rounded: choose fewer"
    rounded = [
        FedVote(levels=6),
        FedVote(levels=7, votes="ternary"),
        FedVote(levels=7, counts="changes"),
        FedVote(levels=7, influence=Agreement()),
    ]
    assert [doubts(method, clients=5) for method in rounded] == [[]] * 4
