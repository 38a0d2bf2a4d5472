"""A reputation below the mean has no vote."""

from __future__ import annotations

import pytest
import torch

from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Cut

VOTES = torch.tensor([[1, 1, -1, 1], [1, 1, -1, -1], [-1, -1, 1, 1]], dtype=torch.int8)


def ballots() -> Ballots:
    return Ballots(VOTES, torch.arange(3), torch.zeros(4), BINARY)


def test_clients_that_agree_have_the_same_vote() -> None:
    for clients in (3, 7, 31):
        votes = torch.ones(clients, 2, dtype=torch.int8)
        cohort = Ballots(votes, torch.arange(clients), torch.zeros(2), BINARY)
        verdict = Cut(start=0.7).judge(Cut(start=0.7).init(clients), cohort, Key(0, 1))
        torch.testing.assert_close(verdict.soft_K, torch.full((clients,), 1 / clients))


def test_below_the_mean_there_is_no_vote_and_above_it_votes_are_in_proportion() -> None:
    """The heads say + + - +: the clients agree on 4, 3 and 1 of 4, and this counts at once."""
    memory = {"reputation": torch.tensor([0.9, 0.6, 0.3])}
    verdict = Cut().judge(memory, ballots(), Key(0, 1))
    assert verdict.soft_K.tolist() == pytest.approx([0.95 / 1.625, 0.675 / 1.625, 0])  # of 0.95, 0.675 and 0.275
    assert torch.equal(verdict.hard_K, verdict.soft_K)


def test_the_first_round_judges_its_own_ballots() -> None:
    verdict = Cut().judge(Cut().init(3), ballots(), Key(0, 1))
    assert verdict.soft_K.tolist() == pytest.approx([1 / 1.875, 0.875 / 1.875, 0])


def test_reputations_follow_agreement_with_the_head_count() -> None:
    verdict = Cut().judge({"reputation": torch.tensor([0.9, 0.6, 0.3])}, ballots(), Key(0, 1))
    torch.testing.assert_close(verdict.memory["reputation"], torch.tensor([0.95, 0.675, 0.275]))
