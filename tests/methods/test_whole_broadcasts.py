"""The soft vote to a client that holds no broadcast is coded against p^(0), which the client makes from the seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from fedvote import FedVote
from fedvote.codecs import pack, unpack
from fedvote.core import Message, State
from fedvote.errors import NoReferenceError
from fedvote.network.network import Network
from fedvote.network.start import Start
from fedvote.randomness import SERVER, Key
from fedvote.rounds import Round
from tests.toy import assert_same, open_round, read_broadcast

VOTES: list[dict[str, Any]] = [
    {},
    {"votes": "ternary"},
    {"levels": 3, "level_rounding": "carry", "counts": "changes"},
    {"levels": 5},
    {"levels": 3, "level_rounding": "random", "votes": "ternary"},
]


def network(seed: int = 0, start: Start = "seed") -> Network:
    layers = nn.Linear(90, 90, bias=False), nn.ReLU(), nn.Linear(90, 2, bias=False)
    return Network(nn.Sequential(*layers), seed=seed, start=start)


def third_round(method: FedVote, network: Network) -> State:
    """A state in which most weights are near their start, as after two rounds of 7 clients."""
    state = method.init(network, 7)
    for round in (1, 2):
        soft_KD = method.soft(state).expand(7, -1)
        chance = torch.rand(soft_KD.shape, generator=Key(round).torch("votes"))
        votes_KD = torch.where(chance < (soft_KD + 1) / 2, 1, -1).to(torch.int8)
        count = method.merge(state, Key(0, round))
        count.add({"votes": votes_KD}, range(7))
        state = count.close()
    return state


def whole(method: FedVote, network: Network, state: State, same_start: bool = True) -> bytes:
    outgoing = Round(method, network, Key(0, 3)).broadcast(state, same_start=same_start)
    return pack(outgoing.headers[0], outgoing.row(0), outgoing.codecs(SERVER))


@pytest.mark.parametrize("options", VOTES, ids=str)
def test_the_whole_soft_vote_is_shorter_for_clients_that_make_the_same_start(options: dict[str, Any]) -> None:
    method, net = FedVote(**options), network()
    state = third_round(method, net)
    since_start, without = (whole(method, net, state, same) for same in (True, False))
    assert len(since_start) < 0.9 * len(without)
    assert since_start == open_round(method, net, state, 3)
    for frame in (since_start, without):
        assert_same(read_broadcast(method, network(), frame, 3), method.broadcast(state))


@pytest.mark.parametrize("options", VOTES, ids=str)
def test_clients_of_another_seed_notice(options: dict[str, Any]) -> None:
    method, net = FedVote(**options), network()
    state = third_round(method, net)
    with pytest.raises(NoReferenceError, match="another start"):
        read_broadcast(method, network(seed=1), whole(method, net, state), 3)
    assert_same(read_broadcast(method, network(seed=1), whole(method, net, state, False), 3), method.broadcast(state))


def test_nobody_makes_weights_that_were_given() -> None:
    method, net = FedVote(levels=3), network(start="given")
    state = third_round(method, net)
    assert method.wire(net).start is None and whole(method, net, state) == whole(method, net, state, False)


def test_clients_that_hold_the_last_broadcast_are_told_no_more_and_no_less() -> None:
    method, net = FedVote(levels=3), network()
    state = third_round(method, net)
    held: Message = {"level": state["level"].flip(0), "levels": state["levels"]}
    wire = method.wire(net)
    assert wire.start is not None
    idle = replace(wire, start=replace(wire.start, make=lambda: pytest.fail("nobody needs the start")))
    header = Round(method, net, Key(0, 3)).header(SERVER)
    wires = idle, wire.without_start()
    frames = [pack(header, method.broadcast(state), each.down(held, Key(0, 3))) for each in wires]
    assert frames[0] == frames[1]
    assert_same(unpack(frames[0], header, wire.down(held, Key(0, 3))), method.broadcast(state))


def test_the_start_is_the_first_broadcast() -> None:
    method, net = FedVote(), network()
    start = method.wire(net).start
    assert start is not None and start.levels == int(method.init(net, 1)["levels"]) + 1
    assert torch.equal(start.numbers, method.init(net, 1)["level"])
