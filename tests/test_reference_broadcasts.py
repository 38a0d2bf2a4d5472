"""What clients hold from the round before: the shared start before round 1, then the last broadcast, or nothing."""

from __future__ import annotations

import pytest

from fedvote import FedAvg, FedVote, SignSGD
from fedvote.core import Message, State
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import Round
from tests.toy import Federation, assert_same, module, open_round, read_broadcast


def reference(method: Method, state: State, round: int) -> Message | None:
    return Round(method, Network(module()), Key(0, round)).reference(state)


@pytest.mark.parametrize("method", [FedVote(), FedVote(coding="plain"), SignSGD(), FedAvg()], ids=str)
def test_before_round_1_everybody_holds_what_the_seed_makes(method: Method) -> None:
    state = Federation(method).start()
    held = reference(method, state, 1)
    assert held is not None
    assert_same(held, method.broadcast(state))


@pytest.mark.parametrize("method", [FedVote(), SignSGD()], ids=str)
def test_later_they_hold_the_broadcast_of_the_round_before_and_are_told_less(method: Method) -> None:
    federation = Federation(method)
    _, second, third = federation.states([range(5), range(5)])
    held = reference(method, third, 3)
    assert held is not None
    assert_same(held, method.broadcast(second))
    whole, less = (open_round(method, federation.network, third, 3, reference=each) for each in (None, held))
    assert len(less) <= len(whole)
    assert_same(read_broadcast(method, federation.network, less, 3, held), method.broadcast(third))


@pytest.mark.parametrize("method", [FedVote(coding="plain"), FedAvg()], ids=str)
def test_nobody_holds_what_a_method_does_not_keep(method: Method) -> None:
    *_, last = Federation(method).states([range(5)])
    assert reference(method, last, 2) is None
