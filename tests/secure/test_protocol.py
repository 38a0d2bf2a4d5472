"""The protocol: the tally is right whoever vanishes, and nobody learns anything else."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedvote.errors import WireError
from fedvote.randomness import Key
from fedvote.secure.answered import SESSIONS, Answered
from fedvote.secure.client_steps import help_unmask
from fedvote.secure.in_process import seeded
from fedvote.secure.messages import (
    BALLOT,
    HEAD,
    SHARES,
    SignedKey,
    ballot_bytes,
    read_ballot,
    read_voters,
    write,
    write_opening,
)
from fedvote.secure.planes import from_bytes, to_numbers
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import Session, Terms
from fedvote.secure.signed_keys import Witness
from tests.secure.parties import Parties, parties


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


def residues(round: Parties, client: int, numbers_n: torch.Tensor) -> torch.Tensor:
    """What the server holds of one client."""
    masked = read_ballot(round.ballot(client, numbers_n), round.session, client)
    return to_numbers(from_bytes(masked.planes, round.terms.count, round.session.bits), round.terms.count)


def chi_square(counts: np.ndarray) -> float:
    """Standard deviations by which counts are less even than chance makes them."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - degrees) / (2 * degrees) ** 0.5)


def test_what_the_server_holds_of_a_client_is_uniform_whatever_the_ballot() -> None:
    """Chi-square of residues, of every bit plane, and of two ballots against each other."""
    count = 2**16
    round = parties(31, count)
    no, yes = torch.zeros(count, dtype=torch.int32), torch.ones(count, dtype=torch.int32)
    held = [residues(round, 7, no), residues(parties(31, count, seed=1), 7, yes)]
    for residues_n in held:
        assert abs(chi_square(np.bincount(residues_n, minlength=32))) < 4
        for plane in range(5):
            assert abs(chi_square(np.bincount(residues_n >> plane & 1, minlength=2))) < 4
    pairs = np.bincount(held[0] * 32 + held[1], minlength=1024)
    assert abs(chi_square(pairs)) < 4


def test_the_own_seed_alone_hides_a_ballot_and_so_do_the_pair_seeds() -> None:
    """A late voter's pair seeds are revealed, a voter's own seed is: what is left is uniform in both cases."""
    from fedvote.secure.masks import add_masks
    from fedvote.secure.pairwise import pair_seed
    from fedvote.secure.planes import to_planes
    from fedvote.secure.shamir import random_number

    count = 2**15
    round = parties(5, count)
    x = torch.ones(count, dtype=torch.int32)
    own = random_number(round.entropy(2))
    pairs = [
        (pair_seed(round.pairs[2].secret_with(round.keys[o].public), round.session.id, 2, o), -1 if o < 2 else 1)
        for o in (0, 1, 3, 4)
    ]
    for known in ([(own, -1)], pairs):
        planes = to_planes(residues(round, 2, x), round.session.bits)
        add_masks(planes, known)
        assert abs(chi_square(np.bincount(to_numbers(planes, count), minlength=8))) < 4
    planes = to_planes(residues(round, 2, x), round.session.bits)
    add_masks(planes, [(own, -1), *pairs])
    assert torch.equal(to_numbers(planes, count), x)  # with both, nothing is hidden: never both


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


def test_bundles_that_cannot_be_opened_are_left_out() -> None:
    round = parties(6)
    round.vote(without=[4])
    frame = round.ballot(4)
    payload = bytearray(frame[HEAD.size : -4])
    payload[-1] ^= 1  # of the bundle for client 5
    round.server.add(write(BALLOT, 1, 4, round.session.id, bytes(payload)), 4)
    assert torch.equal(round.unmask(), round.expected().int())


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
    with pytest.raises(WireError, match="a session of round 5 beyond the 3"):
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
    with pytest.raises(WireError, match="of another configuration"):  # its terms are others
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
    with pytest.raises(WireError, match="too late, or twice"):
        round.server.add(frame, 0)


def _again(frame: bytes) -> bytes:
    """With a checksum that fits."""
    return frame + zlib.crc32(frame).to_bytes(4, "little")


def test_a_ballot_that_comes_after_the_list_is_fixed_is_refused() -> None:
    round = parties(4)
    round.vote(without=[3])
    late = round.ballot(3)
    round.server.request(0)
    with pytest.raises(WireError, match="too late"):
        round.server.add(late, 3)


def test_a_replayed_key_is_refused() -> None:
    round = parties(4)
    keys = round.keys | {1: SignedKey(round.keys[2].public)}
    opening = MaskedTally(round.session, keys).opening(0)
    with pytest.raises(WireError, match="two clients with one public key"):
        round.answer(0, opening, round.ballots_KD[0])


def test_ballots_of_one_client_in_two_sessions_share_no_mask() -> None:
    one, two = parties(4, 2**12), parties(4, 2**12, round=2)
    x = torch.zeros(2**12, dtype=torch.int32)
    difference = (residues(one, 0, x) - residues(two, 0, x)) % 8
    assert abs(chi_square(np.bincount(difference, minlength=8))) < 4


def test_a_request_carries_no_bundle_of_a_client_that_did_not_vote() -> None:
    round = parties(5)
    round.vote(without=[4])
    _, _, voters, bundles = read_voters(round.server.request(0), round.terms, 0)
    assert voters == frozenset(range(4)) and sorted(bundles) == [1, 2, 3]


def test_helpers_learn_and_give_away_one_kind_of_share_of_each_client() -> None:
    """For a voter without missing neighbours 17 bytes: one share of its own seed, and nothing of its pair seeds."""
    round = parties(5)
    round.vote()
    assert len(round.shares(0)) - HEAD.size - 4 == 4 * 17
    with_missing = parties(5)
    with_missing.vote(without=[4])
    assert len(with_missing.shares(0)) - HEAD.size - 4 == 3 * (17 + 16)
