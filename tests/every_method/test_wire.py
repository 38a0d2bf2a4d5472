"""Messages survive the wire, in any order, and a message that did not is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fedvote import FedAvg, FedVote
from fedvote.codecs import Float32, Header, pack, unpack
from fedvote.core import Codec, State
from fedvote.errors import WireError
from fedvote.methods.fedvote.ballot_wire import BallotWire
from fedvote.randomness import Key
from fedvote.rounds import HELD, Closed, Round
from fedvote.wire import Carry, Codecs, Outgoing, weigh, write
from fedvote.wire import frames as written_frames
from tests.toy import (
    Federation,
    assert_same,
    batches,
    close_round,
    examples,
    keys,
    memory,
    merge,
    open_round,
    read_broadcast,
)

COHORT = (0, 1, 3, 4)
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda frame: b"",
    "cut": lambda frame: frame[:-1],
    "longer": lambda frame: frame + b"\0",
    "a bit flipped": lambda frame: frame[:-9] + bytes([frame[-9] ^ 1]) + frame[-8:],
    "noise": lambda frame: Key(0).numpy("noise").bytes(len(frame)),
}


@pytest.fixture(scope="module")
def states(federation: Federation) -> list[State]:
    """Before the first round, and after one and two. No function changes them: test_pure.py."""
    return federation.states([COHORT] * 2)


@pytest.fixture(scope="module")
def frames(federation: Federation, states: list[State]) -> dict[int, bytes]:
    """What clients answer in the first round."""
    return federation.frames(states[0], 1, COHORT)[1]


def test_a_merge_of_decoded_messages_is_the_merge_of_those_sent(federation: Federation, states: list[State]) -> None:
    network, method = federation.network, federation.method
    state = states[1]
    down = method.broadcast(state)
    up, _ = method.local(network, down, batches(examples(), COHORT), memory(method, network, COHORT), keys(COHORT))
    decoded = []
    for k, client in enumerate(COHORT):
        codecs = method.wire(network).up(down, keys(COHORT)[k])
        header = Header(2, client, network.fingerprint, type(method).__name__)
        decoded.append(unpack(pack(header, {n: v[k] for n, v in up.items()}, codecs), header, codecs))
    received = {name: torch.stack([message[name] for message in decoded]) for name in up}
    assert_same(received, up)
    assert_same(merge(method, state, received, COHORT, Key(0, 2)), merge(method, state, up, COHORT, Key(0, 2)))


def test_no_message_is_larger_than_the_room_that_is_made_for_it(
    federation: Federation, states: list[State], frames: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedvote.codecs.frame.TABLES", 256)  # this network is a small one
    round = Round(federation.method, federation.network, Key(0, 1))
    assert max(map(len, frames.values())) <= round.largest_ballot(states[0])


@pytest.mark.parametrize("rounds", [0, 2])
def test_clients_decode_what_the_server_broadcasts(federation: Federation, states: list[State], rounds: int) -> None:
    method, network, state = federation.method, federation.network, states[rounds]
    frame = open_round(method, network, state, rounds + 1)
    assert_same(read_broadcast(method, network, frame, rounds + 1), method.broadcast(state))


@pytest.mark.parametrize("rounds", [1, 2])
def test_who_holds_the_last_broadcast_can_be_told_the_next_with_or_without_it(
    federation: Federation, states: list[State], rounds: int
) -> None:
    method, network = federation.method, federation.network
    before, state = states[rounds - 1 : rounds + 1]
    held = Round(method, network, Key(0, rounds + 1)).reference(state)
    assert (held is not None) == method.wire(federation.network).keeps_broadcast
    if held is not None:
        assert_same(held, method.broadcast(before))
    for theirs in (held, None):
        frame = open_round(method, network, state, rounds + 1, reference=theirs)
        assert_same(read_broadcast(method, network, frame, rounds + 1, held), method.broadcast(state))


def test_the_order_in_which_clients_answer_does_not_matter(
    federation: Federation, states: list[State], frames: dict[int, bytes]
) -> None:
    state = states[0]
    ordered = close_round(federation.method, federation.network, state, frames, Key(0, 1))
    for order in [(4, 3, 1, 0), (3, 0, 4, 1)]:
        shuffled = {client: frames[client] for client in order}
        closed = close_round(federation.method, federation.network, state, shuffled, Key(0, 1))
        assert closed.counted == list(COHORT)
        assert_same(closed.state, ordered.state)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_malformed_message_is_refused_and_the_round_goes_on_without_it(
    federation: Federation, states: list[State], frames: dict[int, bytes], damage: Callable[[bytes], bytes]
) -> None:
    state = states[0]
    damaged = frames | {3: damage(frames[3])}
    without = {client: frame for client, frame in frames.items() if client != 3}
    closed = close_round(federation.method, federation.network, state, damaged, Key(0, 1))
    assert closed.counted == [0, 1, 4] and list(closed.refused) == [3]
    assert closed.refused[3].startswith("client 3: ")
    expected = close_round(federation.method, federation.network, state, without, Key(0, 1))
    assert_same(closed.state, expected.state)


def test_noise_is_refused_before_codecs_are_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    federation = Federation(FedVote())
    state, made = federation.start(), []
    _, frames = federation.frames(state, 1, COHORT)
    up = BallotWire.up

    def spy(self: BallotWire, down: Any, key: Key) -> Codecs:
        made.append(key.client)
        return up(self, down, key)

    monkeypatch.setattr(BallotWire, "up", spy)
    noise = {1: DAMAGES["noise"](frames[1]), 3: DAMAGES["cut"](frames[3])}
    closed = close_round(federation.method, federation.network, state, frames | noise, Key(0, 1))
    assert closed.counted == made == [0, 4]


def test_a_round_in_which_everybody_is_refused_keeps_the_state(federation: Federation, states: list[State]) -> None:
    state = states[1]
    _, frames = federation.frames(state, 2, COHORT)
    cut = {client: frame[:-1] for client, frame in frames.items()}
    closed = close_round(federation.method, federation.network, state, cut, Key(0, 2))
    assert closed.counted == [] and list(closed.refused) == list(COHORT)
    told = {HELD + name: value for name, value in federation.method.broadcast(state).items()}
    assert_same(closed.state, state | (told if federation.method.wire(federation.network).keeps_broadcast else {}))


def test_nobody_speaks_for_another_client_or_another_round(
    federation: Federation, states: list[State], frames: dict[int, bytes]
) -> None:
    state = states[0]
    _, late = federation.frames(state, 2, COHORT)
    mixed = frames | {1: frames[0], 3: late[3]}
    closed = close_round(federation.method, federation.network, state, mixed, Key(0, 1))
    assert closed.counted == [0, 4]
    assert "client 0, expected 1" in closed.refused[1]
    assert "round 2, expected 1" in closed.refused[3]


def test_a_weighed_message_has_the_size_and_content_of_a_written_one(
    federation: Federation, states: list[State]
) -> None:
    network, method = federation.network, federation.method
    state = states[1]

    def round_by(carry: Carry) -> tuple[list[int], Closed]:
        round = Round(method, network, Key(0, 2))
        (broadcast,) = carry(round.broadcast(state, round.reference(state)))
        drawn, remembered = batches(examples(), COHORT, 2), memory(method, network, COHORT)
        outgoing, _ = round.train(broadcast.message, drawn, remembered, keys(COHORT, 2))
        deliveries = carry(outgoing)
        closed = round.close(state, dict(zip(COHORT, deliveries, strict=True)))
        return [broadcast.nbytes, *(delivery.nbytes for delivery in deliveries)], closed

    (weights, weighed), (lengths, written) = round_by(weigh), round_by(write)
    assert weights == lengths
    assert weighed.counted == written.counted == list(COHORT)
    assert_same(weighed.state, written.state)


def test_messages_may_be_merged_one_at_a_time_in_any_order(federation: Federation, states: list[State]) -> None:
    network, method = federation.network, federation.method
    state = states[1]
    known = {name: value for name, value in state.items() if not name.startswith(HELD)}
    drawn, remembered = batches(examples(), COHORT, 2), memory(method, network, COHORT)
    ups, _ = method.local(network, method.broadcast(state), drawn, remembered, keys(COHORT, 2))
    fold = method.merge(known, Key(0, 2))
    for row in (2, 0, 3):
        fold.add({name: values[row : row + 1] for name, values in ups.items()}, [COHORT[row]])
    some = [0, 2, 3]
    early = merge(method, known, {n: v[some] for n, v in ups.items()}, [COHORT[r] for r in some], Key(0, 2))
    assert_same(fold.close(), early)
    fold.add({name: values[1:2] for name, values in ups.items()}, [COHORT[1]])  # late, and counted after all
    assert_same(fold.close(), merge(method, known, ups, COHORT, Key(0, 2)))


def test_a_weighed_message_is_refused_where_its_reader_would_refuse_it() -> None:
    network = Federation(FedAvg()).network
    codecs: dict[str, Codec] = {"voted": Float32(3), "float": Float32(2)}
    headers = [Header(1, client, network.fingerprint, "FedAvg") for client in range(3)]
    bad = torch.tensor([[1.0, 2.0, 3.0], [1.0, float("nan"), float("inf")], [0.0, 0.0, 0.0]])
    stack = {"voted": bad, "float": torch.ones(3, 2)}
    outgoing = Outgoing(headers, stack, lambda _: codecs)
    for frame, weighed, header in zip(written_frames(outgoing), weigh(outgoing), headers, strict=True):
        assert len(frame) == weighed.nbytes
        try:
            unpack(frame, header, codecs)
        except WireError as error:
            assert weighed.refusal == str(error) and header.client == 1
        else:
            assert not weighed.refusal and header.client != 1
