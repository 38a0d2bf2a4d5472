"""What those are told who hold the last broadcast: the part of it that is new, and no more."""

from __future__ import annotations

import pytest

from fedvote import FedAvg, FedVote
from fedvote.codecs.reference import CHECKSUM
from fedvote.method import Method
from fedvote.methods import FetchSGD, SignSGD, Signum
from fedvote.methods.fedvote import Votes
from fedvote.randomness import Key
from fedvote.rounds import Round
from tests.toy import Federation, open_round

OVERHEAD = 39 + 2 * (9 + 2) + 4  # a frame, two tensors, and two bytes each that say how they are written


def lengths(method: Method) -> tuple[Federation, int, int]:
    """Of the broadcast of round 3, to those who hold that of round 2, and to others."""
    federation = Federation(method)
    state = federation.states([range(5), range(5)])[-1]
    last = Round(method, federation.network, Key(0, 3)).reference(state)
    brief = open_round(method, federation.network, state, 3, last)
    return federation, len(brief), len(open_round(method, federation.network, state, 3))


@pytest.mark.parametrize("method", [SignSGD(), Signum(), SignSGD(server_lr=0.3)], ids=str)
def test_signs_take_a_bit_a_weight_where_nobody_ties(method: Method) -> None:
    federation, brief, whole = lengths(method)
    D, F = federation.network.D, federation.network.F
    assert brief == OVERHEAD + 2 * CHECKSUM.size + -(-D // 8) + -(-F // 8)
    assert whole == OVERHEAD + 4 * (D + F)


def test_of_few_weights_that_changed_the_others_are_not_told() -> None:
    _, brief, whole = lengths(FetchSGD(k=4, columns=40))
    places = 2 * 5 + 2 * 7  # planes of up to seven bits for the gaps
    assert brief <= OVERHEAD + 2 * CHECKSUM.size + places + 4 * 4 < whole / 2


def test_weights_that_all_changed_are_told_whole() -> None:
    _, brief, whole = lengths(FedAvg())
    assert brief == whole


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_plain_bits_need_nothing_kept(votes: Votes) -> None:
    federation, brief, whole = lengths(FedVote(votes=votes, coding="plain"))
    assert brief == whole and not federation.method.wire(federation.network).keeps_broadcast
