"""Colluders send one common message, and it is the one they mean."""

from __future__ import annotations

import pytest
import torch

from fedvote.attacks import Colluders, Inverse, LabelFlip, MinMax, Omniscient, Random
from fedvote.errors import ConfigError
from tests.attacks.messages import KEYS, floats, leaning, many, sent, votes
from tests.toy import assert_same


def test_colluders_send_the_plurality_of_their_inverted_ballots() -> None:
    own = votes([1, 1, -1], [1, -1, -1], [-1, 1, -1])
    assert_same(sent(Colluders(), own), votes([-1, -1, 1], [-1, -1, 1], [-1, -1, 1]))


def test_colluders_send_the_plurality_of_three_values() -> None:
    own = votes([1, 0, -1], [0, 0, -1], [0, 1, 0])
    assert_same(sent(Colluders(), own), votes([0, 0, 1], [0, 0, 1], [0, 0, 1]))


def test_colluders_send_minus_their_mean_weights() -> None:
    own = floats([1.0, 2.0, 3.0], [3.0, -6.0, 3.0])
    assert_same(sent(Colluders(), own), floats([-2.0, 2.0, -3.0], [-2.0, 2.0, -3.0]))


@pytest.mark.parametrize("intention", [Inverse(), LabelFlip(), Random()], ids=str)
def test_colluders_agree_to_the_last_vote_ties_included(intention: Inverse | LabelFlip | Random) -> None:
    ballots = sent(Colluders(intention), many([-1, 1], clients=4))["votes"]
    assert all(torch.equal(ballot, ballots[0]) for ballot in ballots)
    assert 0.4 < float((ballots[0] == 1).float().mean()) < 0.6


def test_label_flippers_poison_their_labels_and_send_the_plurality_of_what_they_learn() -> None:
    attack, labels = Colluders(LabelFlip()), torch.tensor([[0, 9, 4], [1, 5, 8]])
    assert torch.equal(attack.poison(labels, 10, KEYS), LabelFlip().poison(labels, 10, KEYS))
    assert torch.equal(Colluders().poison(labels, 10, KEYS), labels)
    own = votes([1, 1, -1], [1, -1, -1], [-1, 1, -1])
    assert_same(sent(attack, own), votes([1, 1, -1], [1, 1, -1], [1, 1, -1]))


def test_a_common_ballot_opposes_the_honest_more_than_inverted_ballots_do() -> None:
    """It is rid of the noise of rounding."""
    own, honest = leaning(5, seed=1), leaning(5, seed=2)["votes"]
    against = [
        float((sent(attack, own)["votes"][:, None] != honest).float().mean()) for attack in (Inverse(), Colluders())
    ]
    assert against[0] + 0.03 < against[1]


@pytest.mark.parametrize("intention", [Omniscient(), MinMax()], ids=str)
def test_an_intention_that_needs_honest_messages_is_refused(intention: Omniscient | MinMax) -> None:
    with pytest.raises(ConfigError, match="expected one of: inverse, label-flip, random"):
        Colluders(intention)
