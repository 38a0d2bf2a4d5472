"""The protocol: the tally is right whoever vanishes, and those who send wrong shares are named."""

from __future__ import annotations

import random

import pytest
import torch

from fedvote.errors import WireError
from fedvote.secure.messages import (
    BALLOT,
    HEAD,
    SHARES,
    bundle_bytes,
    write,
)
from tests.secure.parties import parties


@pytest.mark.parametrize("largest", [1, 254])
@pytest.mark.parametrize(
    ("clients", "before", "between"),
    [
        (3, [], []),
        (4, [3], []),
        (4, [], [0]),
        (5, [], [2]),
        (6, [], [0, 5]),
        (6, [1], [3]),
        (9, [0, 4, 8], []),
        (12, [0, 11], [5, 6]),
        (11, [4], [0, 10]),
        (12, [], [0, 1, 2, 3]),
    ],
)
def test_the_tally_is_right_if_up_to_a_third_vanishes_before_or_between_the_messages(
    clients: int, before: list[int], between: list[int], largest: int
) -> None:
    round = parties(clients, 77, largest)
    round.vote(without=before)
    assert torch.equal(round.unmask(without=[*before, *between]), round.expected(without=before).int())


def test_the_tally_is_right_in_a_graph_in_which_a_third_vanishes() -> None:
    round = parties(40, 50, neighbours=24)
    assert round.session.degree == 24 and round.session.threshold == 9
    round.vote(without=range(7))
    assert torch.equal(round.unmask(without=range(13)), round.expected(without=range(7)).int())


@pytest.mark.parametrize("trial", range(40))
def test_whoever_vanishes_the_tally_is_right_or_the_round_closes_with_a_sentence(trial: int) -> None:
    """Random cohorts, graphs and numbers; random clients vanish before they vote, or before they help, or are late."""
    draw = random.Random(trial)
    clients = draw.randint(4, 16)
    neighbours = draw.choice([0, 0, 0, min(clients - 1, 6)])
    round = parties(clients, draw.choice([1, 31, 33, 77]), draw.choice([1, 2, 254, 32766]), neighbours, seed=trial)
    lost = draw.sample(range(clients), draw.randint(0, clients if trial % 2 else clients // 3))
    before = lost[: draw.randint(0, len(lost))]
    between = [client for client in lost if draw.random() < 0.7 or client not in before]  # some come back to help
    is_few = len(lost) <= clients // 3 and clients - len(before) >= round.session.fewest and not neighbours
    try:
        round.vote(without=before)
        assert torch.equal(round.unmask(without=between), round.expected(without=before).int())
    except WireError as error:
        assert not is_few, error
        assert "expected" in str(error)


def test_a_client_that_did_not_vote_can_still_help() -> None:
    round = parties(6)
    round.vote(without=[0, 1])
    assert torch.equal(round.unmask(without=[4, 5]), round.expected(without=[0, 1]).int())


def test_with_one_answer_fewer_than_the_threshold_nothing_is_learned() -> None:
    round = parties(9)
    round.vote()
    helpers = round.session.threshold
    assert helpers == 5
    with pytest.raises(WireError, match="4 shares of a seed, expected 5 or more"):
        round.unmask(without=range(helpers, 9))
    assert round.server.lacking() == 1
    round.server.take_shares(round.shares(helpers), helpers)
    assert round.server.lacking() == 0
    assert torch.equal(round.server.sums(), round.expected().int())


@pytest.mark.parametrize("liars", [[0], [3, 8]])
def test_wrong_shares_are_noticed_and_their_helpers_named(liars: list[int]) -> None:
    round = parties(12)
    round.vote()
    for helper in range(12):
        answer = round.shares(helper)
        if helper in liars:  # every share is another number; the bytes that say "opened" stay
            payload = bytearray(answer[HEAD.size : -4])
            payload[1::17] = bytes(byte ^ 5 * helper + 1 for byte in payload[1::17])
            answer = write(SHARES, 1, helper, round.session.id, bytes(payload))
        round.server.take_shares(answer, helper)
    assert torch.equal(round.server.sums(), round.expected().int())
    assert set(round.server.wrong) <= set(liars)
    assert round.server.wrong.keys() >= {0} if liars == [0] else True


def test_a_voter_whose_shares_do_not_fit_is_named_and_the_tally_refused() -> None:
    round = parties(6)
    round.vote(without=[4])
    frame = round.ballot(4)
    at = HEAD.size + round.session.planes_bytes  # the check of its own seed
    payload = bytearray(frame[HEAD.size : -4])
    payload[at - HEAD.size] ^= 1
    round.server.add(write(BALLOT, 1, 4, round.session.id, bytes(payload)), 4)
    with pytest.raises(WireError, match="client 4's masks cannot be removed"):
        round.unmask()
    assert list(round.server.wrong) == [4]


def test_a_voter_whose_bundles_nobody_can_open_is_named() -> None:
    round = parties(6)
    round.vote(without=[4])
    frame = round.ballot(4)
    at = -4 - round.session.degree * bundle_bytes(round.session)
    bundles = bytes(byte ^ 1 for byte in frame[at:-4])
    round.server.add(write(BALLOT, 1, 4, round.session.id, frame[HEAD.size : at] + bundles), 4)
    with pytest.raises(WireError, match="client 4's masks cannot be removed: 0 shares"):
        round.unmask()
    assert round.server.wrong == {4: "client 4: its helpers cannot open its shares"}


def test_bundles_that_cannot_be_opened_are_left_out() -> None:
    round = parties(6)
    round.vote(without=[4])
    frame = round.ballot(4)
    payload = bytearray(frame[HEAD.size : -4])
    payload[-1] ^= 1  # of the bundle for client 5
    round.server.add(write(BALLOT, 1, 4, round.session.id, bytes(payload)), 4)
    assert torch.equal(round.unmask(), round.expected().int())
