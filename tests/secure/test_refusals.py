"""Clients and servers refuse second requests, small tallies, and frames of anything else."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from fedvote.errors import LateBallotError, WireError
from fedvote.randomness import Key
from fedvote.secure.answered import SESSIONS, Answered
from fedvote.secure.client_steps import help_unmask
from fedvote.secure.in_process import seeded
from fedvote.secure.messages import (
    SignedKey,
    ballot_bytes,
    write_opening,
)
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import Session, Terms
from fedvote.secure.signed_keys import Witness
from tests.secure.parties import Parties, parties


def test_a_client_answers_one_list_of_voters_a_session() -> None:
    round = parties(6)
    round.vote(without=[5])
    first = round.server.request(0)
    answer = round.shares(0, first)
    assert round.shares(0, first) == answer  # the same list again: the answer may have been lost
    other = parties(6)
    other.vote(without=[4])
    with pytest.raises(WireError, match="a second request in one session"):
        round.shares(0, other.server.request(0))


def test_a_client_does_not_answer_the_same_list_with_other_bundles() -> None:
    """A server that got two ballots of one client in a session could ask for the own seeds of both."""
    round, again = parties(6), parties(6)
    round.vote()
    round.shares(0, round.server.request(0))
    again.entropy = lambda client: seeded(Key(1, 1, client), "shares")  # type: ignore[method-assign]
    again.vote()
    assert again.session.id == round.session.id
    with pytest.raises(WireError, match="a second request in one session"):
        round.shares(0, again.server.request(0))


def test_a_client_helps_in_few_sessions_of_a_round() -> None:
    answered, asked = Answered(), (b"a request", frozenset(range(3)))
    terms = Terms("a run", 1)
    sessions = [Session(terms, 5, bytes([number]) * 16, (0, 1, 2)) for number in range(SESSIONS + 1)]
    for session in sessions[:-1]:
        answered = answered.answering(session, *asked)
    with pytest.raises(WireError, match="another session of round 5, expected at most 3 of one round"):
        answered.answering(sessions[-1], *asked)
    later = Answered.read(answered.answering(replace(sessions[0], round=7), *asked).written())
    assert len(later.lists) == 1  # earlier rounds are forgotten, and nobody helps in them any more
    with pytest.raises(WireError, match="of round 5, but this client has helped in round 7"):
        later.answering(sessions[0], *asked)


def test_nobody_asks_for_or_helps_with_a_tally_below_the_minimum() -> None:
    with pytest.raises(WireError, match=r"a session of 2 clients, expected secure\.minimum = 3"):
        parties(2)
    round = parties(5)
    round.vote(without=[0, 1, 2])
    with pytest.raises(WireError, match=r"a tally of 2 ballots, expected secure\.minimum = 3"):
        round.server.request(0)
    careless = Parties(5, replace(round.terms, minimum=2))
    careless.vote(without=[0])
    request = careless.server.request(0)
    with pytest.raises(WireError, match="another configuration"):  # its terms are others
        help_unmask(round.pairs[0], 0, request, round.terms, Answered(), Witness())


def test_a_session_of_other_clients_gives_other_masks_so_that_views_cannot_be_split() -> None:
    round = parties(5)
    seen = Session(round.terms, 1, round.session.nonce, (0, 1, 2, 4))
    opening = write_opening(seen, 0, round.keys)
    with pytest.raises(WireError, match="session"):
        round.server.add(round.answer(0, opening, round.ballots_KD[0]), 0)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda frame: frame[:-5], "checksum"),
        (lambda frame: b"", "too few"),
        (lambda frame: _again(frame[:-5]), "bytes, expected"),
        (lambda frame: _again(frame[:-4] + b"\0"), "bytes, expected"),
        (lambda frame: _again(frame[:6] + bytes([2, 0, 0, 0]) + frame[10:-4]), "round 2, expected 1"),
        (lambda frame: _again(frame[:10] + bytes([1, 0, 0, 0]) + frame[14:-4]), "client 1, expected 0"),
        (lambda frame: _again(frame[:14] + bytes(16) + frame[30:-4]), "session"),
        (lambda frame: _again(frame[:5] + bytes([5]) + frame[6:-4]), "kind 5, expected 3"),
        (lambda frame: _again(b"FVOT" + frame[4:-4]), "FVOT"),
    ],
)
def test_a_masked_ballot_of_another_length_round_client_or_session_is_refused(damage: object, problem: str) -> None:
    round = parties(4)
    frame = round.ballot(0)
    assert len(frame) == ballot_bytes(round.session)
    with pytest.raises(WireError, match=problem):
        round.server.add(damage(frame), 0)  # type: ignore[operator]
    assert not round.server.voters
    round.server.add(frame, 0)
    with pytest.raises(WireError, match="client 0's ballot came twice"):
        round.server.add(frame, 0)


def _again(frame: bytes) -> bytes:
    """With a checksum that fits."""
    return frame + zlib.crc32(frame).to_bytes(4, "little")


def test_a_ballot_that_comes_after_the_list_is_fixed_is_refused() -> None:
    round = parties(4)
    round.vote(without=[3])
    late = round.ballot(3)
    round.server.request(0)
    with pytest.raises(LateBallotError, match="after the list of voters was fixed"):
        round.server.add(late, 3)


def test_a_replayed_key_is_refused() -> None:
    round = parties(4)
    keys = round.keys | {1: SignedKey(round.keys[2].public)}
    opening = MaskedTally(round.session, keys).opening(0)
    with pytest.raises(WireError, match="two clients with one public key"):
        round.answer(0, opening, round.ballots_KD[0])
