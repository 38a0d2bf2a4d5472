"""Ballots that are decoded by other processes, and counted as they arrive, make the state of a simulated round."""

from __future__ import annotations

from contextlib import closing
from multiprocessing import active_children

import pytest
import torch
from torch import nn

from fedvote import FedVote
from fedvote.engines.flower import decoders
from fedvote.engines.flower.decoders import Decoders
from fedvote.errors import WireError
from fedvote.methods.fedvote.vote_count import Judged
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.reputation import Camps, Proportional, Uniform
from fedvote.rounds import BallotBox, Round
from fedvote.wire import Delivery, Outgoing, frames
from tests.toy import assert_same

K = 5


def opened(method: FedVote) -> tuple[Round, dict[str, torch.Tensor], list[bytes]]:
    """A round of clients whose votes are drawn at random, and their frames."""
    network = Network(nn.Sequential(nn.Linear(12, 40), nn.Linear(40, 3)), 0)
    state = method.init(network, K)
    round = Round(method, network, Key(0, 1))
    votes = torch.tensor(method.alphabet, dtype=torch.int8)[
        torch.randint(len(method.alphabet), (K, network.D), generator=Key(1).torch("votes"))
    ]
    stack = {"votes": votes} | ({"float": torch.rand(K, network.F)} if method.train_float else {})
    down = method.broadcast(state)
    sent = Outgoing([round.header(c) for c in range(K)], stack, lambda c: round.wire.up(down, Key(0, 1, c)))
    return round, state, frames(sent)


METHODS = [
    FedVote(reputation=rule, votes=votes, train_float=floats)  # type: ignore[arg-type]
    for rule in (Uniform(), Proportional(), Camps())
    for votes, floats in (("binary", False), ("ternary", True))
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{type(m.reputation).__name__}-{m.votes}")
def test_ballots_that_are_added_as_they_arrive_make_the_same_state(method: FedVote) -> None:
    round, state, sent = opened(method)
    deliveries: dict[int, Delivery] = {c: round.read_ballot(state, frame, c) for c, frame in enumerate(sent)}
    box = BallotBox(round, state, K)
    for client in (3, 0, 4, 1):
        box.put(deliveries[client].stack, [client])
    early = box.close()
    box.put(deliveries[2].stack, [2])
    closed, at_once = box.close(), round.close(state, deliveries)
    assert early.counted == [0, 1, 3, 4] and closed.counted == at_once.counted == [0, 1, 2, 3, 4]
    assert_same(closed.state, at_once.state)


def test_other_processes_decode_the_same_and_refuse_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "WORTH_IT", 0)
    round, state, sent = opened(FedVote())
    broken = sent[1][:-9] + bytes([sent[1][-9] ^ 1]) + sent[1][-8:]
    with closing(Decoders(2)) as pool:
        reader, here = pool.reader(round, state), Decoders(1).reader(round, state)
        reader.ahead([(sent[0], 0), (broken, 1), (sent[2], 2)])
        for client in (2, 0):
            assert_same(reader(sent[client], client).message, here(sent[client], client).message)
        for each in (reader, here):
            with pytest.raises(WireError, match="the checksum does not match"):
                each(broken, 1)
        assert_same(reader(sent[3], 3).message, here(sent[3], 3).message)  # one that nobody announced


def test_a_process_that_dies_costs_no_ballot_and_the_next_round_has_a_new_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "WORTH_IT", 0)
    round, state, sent = opened(FedVote())
    announced = [(frame, client) for client, frame in enumerate(sent)]
    others = set(active_children())
    with closing(Decoders(2)) as pool:
        here, reader = Decoders(1).reader(round, state), pool.reader(round, state)

        def read(client: int) -> None:
            assert_same(reader(sent[client], client).message, here(sent[client], client).message)

        reader.ahead(announced[:2])
        read(0)
        dying = set(active_children()) - others
        for child in dying:
            child.kill()
            child.join()
        reader.ahead(announced[2:])
        for client in (4, 1, 3, 2):
            read(client)
        reader = pool.reader(round, state)
        reader.ahead(announced)
        for client in range(K):
            read(client)
        assert len(dying) == len(set(active_children()) - others) == 2


def test_rules_that_keep_ballots_keep_a_bit_a_vote() -> None:
    method: FedVote = FedVote(reputation=Camps())
    round, state, sent = opened(method)
    box = BallotBox(round, state, K)
    for client, frame in enumerate(sent):
        box.put(round.read_ballot(state, frame, client).stack, [client])
    merge = box._merge
    assert isinstance(merge, Judged)
    ballots, clients = merge._shelf.ballots()
    assert clients == list(range(K)) and ballots.words_KPW.shape == (K, 1, -(-round.network.D // 64))  # words of 64
