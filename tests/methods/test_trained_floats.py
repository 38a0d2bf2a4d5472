"""Float weights that train travel in levels: fewer bits, the same weights at both ends, and no rest is lost."""

from __future__ import annotations

import pytest
import torch

from fedvote import FedVote
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.methods.fedvote.trained_floats import FLOAT, REST, merged_floats, rounded_rows
from fedvote.randomness import Key
from fedvote.reputation import Proportional
from tests.toy import Federation, assert_same, open_round, read_broadcast, three_weights

LEVELS = FedVote(train_float=True, float_levels=7)


def test_a_client_sends_floats_within_half_a_step_of_the_trained_ones() -> None:
    start = torch.tensor([0.5, -0.25, 0.0, 1.0])
    trained = start - torch.tensor([[0.7, -0.1, 0.05, 0.0], [0.0, 0.0, 0.0, 0.0]])
    sent = rounded_rows(start, trained, 7)
    # 7 steps of 1/8 reach 0.7; so 0.7, -0.1 and 0.05 are 6, -1 and 0 steps
    assert (start - sent[0]).tolist() == [0.75, -0.125, 0.0, 0.0]
    assert torch.equal(sent[1], start)
    assert torch.equal(rounded_rows(start, trained, 0), trained)


def test_the_rest_of_a_rounded_average_is_sent_later() -> None:
    state: State = {FLOAT: torch.zeros(3), REST: torch.zeros(3)}
    state = merged_floats(LEVELS, state, torch.tensor([[1.0, 0.3, -0.01]]), torch.ones(1))
    assert state[FLOAT].tolist() == [1.0, 0.25, 0.0]
    for _ in range(12):  # clients that change nothing
        state = merged_floats(LEVELS, state, state[FLOAT][None], torch.ones(1))
    torch.testing.assert_close(state[FLOAT], torch.tensor([1.0, 0.3, -0.01]), atol=1e-6, rtol=0)


def test_clients_decode_the_floats_that_the_server_continues_from() -> None:
    federation = Federation(LEVELS)
    _, second, third = federation.states([range(5), range(5)])
    held = LEVELS.broadcast(second)
    for reference in (held, None):
        frame = open_round(LEVELS, federation.network, third, 3, reference)
        assert_same(read_broadcast(LEVELS, federation.network, frame, 3, reference), LEVELS.broadcast(third))


@pytest.mark.parametrize("method", [LEVELS, FedVote(train_float=True, float_levels=7, coding="plain")], ids=str)
def test_levels_take_fewer_bytes_than_float32_in_both_directions(method: FedVote) -> None:
    sizes = []
    for each in (method, FedVote(train_float=True, coding=method.coding)):
        federation = Federation(each)
        held, last = federation.states([range(5), range(5)])[1:]
        down = open_round(each, federation.network, last, 3, each.broadcast(held))
        _, frames = federation.frames(last, 3, [0])
        sizes.append((len(down), len(frames[0])))
    (down_levels, up_levels), (down_floats, up_floats) = sizes
    assert down_levels < down_floats - 80 and up_levels < up_floats - 80  # 39 floats of 4 bytes


def test_under_a_rule_the_median_is_rounded() -> None:
    method = FedVote(train_float=True, float_levels=127, reputation=Proportional())
    state = method.init(three_weights(), 3)
    start = state["float"]
    clients = torch.stack([start - 0.5, start - 0.25, start + 1e6])
    after = merged_floats(method, state, clients, torch.ones(3))
    torch.testing.assert_close(after["float"], start - 0.25)


def test_frozen_floats_have_no_rest_in_the_state() -> None:
    assert REST in Federation(LEVELS).start()
    assert REST not in Federation(FedVote(float_levels=7)).start()
    assert REST not in Federation(FedVote(train_float=True, float_levels=0)).start()


def test_the_wire_of_levels_depends_on_the_broadcast() -> None:
    federation = Federation(LEVELS)
    codecs = LEVELS.wire(federation.network).up(LEVELS.broadcast(federation.start()), Key(0, 1, 0))
    assert codecs["float"].plain_bits == pytest.approx(3.9069, abs=1e-4)


@pytest.mark.parametrize("levels", [-1, 128])
def test_levels_beyond_a_byte_are_refused(levels: int) -> None:
    with pytest.raises(ConfigError, match=rf"float_levels is {levels}, expected 0 \(float32\) or 1 to 127"):
        FedVote(float_levels=levels)
