"""Coding changes the bytes of a round, and not its training."""

from __future__ import annotations

import pytest
from torch import nn

from fedvote import FedVote
from fedvote.errors import ConfigError
from fedvote.methods.fedvote import Votes
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.reputation import Proportional, Reputation, Uniform
from fedvote.rounds import HELD, Round
from tests.codecs.entropy_cases import (
    ALPHABETS,
)
from tests.toy import CLASSES, CLIENTS, FEATURES, Federation, assert_same, open_round


def wide() -> Network:
    """3,600 voted weights."""
    norm = nn.BatchNorm1d(60, affine=False, track_running_stats=False)
    hidden = nn.Linear(60, 54, bias=False), nn.BatchNorm1d(54, affine=False, track_running_stats=False)
    return Network(nn.Sequential(nn.Linear(FEATURES, 60, bias=False), norm, nn.ReLU(), *hidden, nn.Linear(54, CLASSES)))


@pytest.mark.parametrize("votes", ALPHABETS)
@pytest.mark.parametrize("reputation", [Uniform(), Proportional()], ids=["uniform", "proportional"])
@pytest.mark.parametrize("train_float", [False, True])
def test_coding_changes_the_bytes_and_not_the_training(votes: Votes, reputation: Reputation, train_float: bool) -> None:
    coded, bits = (
        Federation(FedVote(votes=votes, reputation=reputation, train_float=train_float, coding=coding))
        for coding in ("entropy", "plain")
    )
    cohorts = [range(CLIENTS), (0, 1, 3), (4, 2)]
    for here, there in zip(coded.states(cohorts), bits.states(cohorts), strict=True):
        assert_same({name: value for name, value in here.items() if not name.startswith(HELD)}, there)


@pytest.mark.parametrize("votes", ALPHABETS)
@pytest.mark.parametrize("reputation", [Uniform(), Proportional()], ids=["uniform", "proportional"])
def test_coding_makes_every_frame_smaller(votes: Votes, reputation: Reputation) -> None:
    coded, bits = (
        Federation(FedVote(votes=votes, reputation=reputation, coding=coding), wide())
        for coding in ("entropy", "plain")
    )
    assert coded.network.D == 3600
    state = coded.start()
    for round in (1, 2, 3):
        (_, ups), (_, plain_ups) = (f.frames(state, round, range(CLIENTS)) for f in (coded, bits))
        coded_last, bits_last = (Round(f.method, f.network, Key(0, round)).reference(state) for f in (coded, bits))
        down, plain_down = (open_round(f.method, f.network, state, round) for f in (coded, bits))
        known = open_round(bits.method, bits.network, state, round, reference=bits_last)
        to_holders = open_round(coded.method, coded.network, state, round, reference=coded_last)
        assert len(to_holders) <= len(down)
        if round == 1:
            assert to_holders == known and len(known) < 100  # both sides have made it already
        elif int(state["levels"]) < 4096:
            assert len(to_holders) < len(down) < len(plain_down)
        else:  # a histogram of 4,097 levels is too long for so few weights: planes, and the byte that says so
            assert len(down) == len(plain_down) + 1
        for client in ups:
            assert len(ups[client]) < len(plain_ups[client])
        state = coded.round(state, round)


def test_another_coding_is_refused() -> None:
    with pytest.raises(ConfigError, match="coding is 'zip', expected one of: entropy, plain"):
        FedVote(coding="zip")  # type: ignore[arg-type]
