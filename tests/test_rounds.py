"""One round by the three functions that both engines call."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from fedvote import FedAvg, FedVote
from fedvote.aggregate import Krum
from fedvote.codecs import LARGEST, Header, pack, unpack
from fedvote.core import Examples, State
from fedvote.data.batches import draw_batches
from fedvote.errors import ConfigError, WireError
from fedvote.method import AllAtOnce, Merge, Method
from fedvote.methods import Eden, FedPAQ, FetchSGD
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import BallotBox, Round
from fedvote.wire import stacked
from tests.toy import (
    CLIENTS,
    Federation,
    assert_same,
    batches,
    clients_turn,
    close_round,
    delivered,
    keys,
    memory,
    open_round,
    owned,
    read_broadcast,
    three_weights,
)

LABELLED = Examples(torch.arange(100.0)[:, None], torch.arange(100))
OWNED = [torch.arange(0, 10), torch.arange(10, 40), torch.tensor([99, 50, 77, 61, 42])]


@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (3, 4), (7, 5), (20, 3)])
def test_every_batch_is_full_and_of_the_clients_own_examples(steps: int, batch: int) -> None:
    drawn = draw_batches(LABELLED, OWNED, steps, batch, keys(range(3)))
    assert drawn.index_KSB.shape == (3, steps, batch)
    assert drawn.samples_K.tolist() == [10, 30, 5]
    for index_SB, rows in zip(drawn.index_KSB, OWNED, strict=True):
        assert set(index_SB.flatten().tolist()) <= set(rows.tolist())


@pytest.mark.parametrize(("steps", "batch"), [(1, 4), (2, 5), (4, 5), (13, 7)])
def test_examples_appear_equally_often_up_to_one_pass(steps: int, batch: int) -> None:
    drawn = draw_batches(LABELLED, OWNED, steps, batch, keys(range(3)))
    for index_SB, rows in zip(drawn.index_KSB, OWNED, strict=True):
        times = torch.bincount(index_SB.flatten(), minlength=100)[rows]
        whole = steps * batch // len(rows)
        assert set(times.tolist()) <= {whole, whole + 1} and int(times.sum()) == steps * batch


def test_passes_are_in_different_random_orders() -> None:
    (index_SB,) = draw_batches(LABELLED, OWNED[1:2], 4, 15, keys([1])).index_KSB
    first, second = index_SB.flatten().split(30)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(10, 40))
    assert first.tolist() != second.tolist() and first.tolist() != list(range(10, 40))


def test_batches_depend_on_seed_round_and_client_alone() -> None:
    def drawn(key: Key, rows: torch.Tensor = OWNED[1]) -> list[int]:
        return draw_batches(LABELLED, [rows], 2, 8, [key]).index_KSB.flatten().tolist()

    here = drawn(Key(1, 2, 3))
    torch.manual_seed(0)
    assert here == drawn(Key(1, 2, 3))
    assert len({str(drawn(key)) for key in (Key(1, 2, 3), Key(0, 2, 3), Key(1, 1, 3), Key(1, 2, 2))}) == 4
    stacked = draw_batches(LABELLED, [OWNED[0], OWNED[1]], 2, 8, [Key(1, 2, 0), Key(1, 2, 3)])
    assert stacked.index_KSB[1].flatten().tolist() == here


def test_a_step_gathers_its_batch_from_the_examples() -> None:
    drawn = draw_batches(LABELLED, OWNED, 3, 4, keys(range(3)))
    x, y = drawn.at(2)
    assert x.shape == (3, 4, 1) and torch.equal(y, drawn.index_KSB[:, 2])
    assert torch.equal(x[..., 0].long(), y)


def test_a_round_by_hand_is_a_round() -> None:
    federation = Federation(FedVote())
    network, method, state = federation.network, federation.method, federation.start()
    down = read_broadcast(method, network, open_round(method, network, state, 1), 1)
    frames: dict[int, bytes] = {}
    for client in reversed(range(CLIENTS)):  # each alone, as between processes
        remembered = memory(method, network, [client])
        turn = batches(federation.data, [client])
        (frame,), _ = clients_turn(method, network, down, turn, remembered, keys([client]))
        frames[client] = frame
    closed = close_round(method, network, state, frames, Key(0, 1))
    assert closed.counted == [0, 1, 2, 3, 4] and closed.refused == {}
    assert_same(closed.state, federation.round(state, 1))


def test_clients_and_server_refuse_what_is_of_another_round() -> None:
    federation = Federation(FedAvg())
    network, method, state = federation.network, federation.method, federation.start()
    with pytest.raises(WireError, match="round 1, expected 2"):
        read_broadcast(method, network, open_round(method, network, state, 1), 2)
    _, frames = federation.frames(state, 1, [0])
    closed = close_round(method, network, state, frames, Key(0, 2))
    assert closed.counted == [] and "round 1, expected 2" in closed.refused[0]


def test_the_frames_of_another_model_are_refused() -> None:
    federation = Federation(FedVote())
    state = federation.start()
    _, frames = federation.frames(state, 1, [0, 1])
    narrow = Federation(FedVote(), three_weights())
    with pytest.raises(WireError, match="fingerprint"):
        read_broadcast(narrow.method, narrow.network, open_round(federation.method, federation.network, state, 1), 1)
    closed = close_round(narrow.method, narrow.network, narrow.start(), frames, Key(0, 1))
    assert closed.counted == [] and all("fingerprint" in why for why in closed.refused.values())


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan")])
def test_a_client_that_sends_no_finite_numbers_is_left_out(number: float) -> None:
    federation = Federation(FedAvg())
    network, method, state = federation.network, federation.method, federation.start()
    _, frames = federation.frames(state, 1, [0, 1])
    message = {"voted": torch.full((network.D,), number), "float": network.start.floats}
    header = Header(1, 1, network.fingerprint, "FedAvg")
    frames[1] = pack(header, message, method.wire(network).up(method.broadcast(state), Key(0, 1, 1)))
    closed = close_round(method, network, state, frames, Key(0, 1))
    assert closed.counted == [0] and "are not numbers of at most 1.07e+09" in closed.refused[1]
    assert all(value.isfinite().all() for value in closed.state.values())


def test_the_whole_federation_need_not_take_part() -> None:
    federation = Federation(FedVote(), Network(torch.nn.Sequential(torch.nn.Linear(6, 2), torch.nn.Linear(2, 3))))
    state = federation.round(federation.start(), 1, [4])
    assert state["vote_weight"].tolist() == [0, 0, 0, 0, 1]
    assert owned([4])[0].tolist()[0] == 160


def test_noise_that_leaves_too_few_clients_for_a_rule_costs_a_round_and_not_the_run() -> None:
    federation = Federation(FedAvg(aggregate=Krum(byzantine=1)))
    network, method, state = federation.network, federation.method, federation.start()
    _, frames = federation.frames(state, 1, range(5))
    closed = close_round(method, network, state, frames | {0: b"noise"}, Key(0, 1))
    assert_same(closed.state, state)
    assert closed.counted == [] and sorted(closed.refused) == [0, 1, 2, 3, 4]
    four = {m: frames[m] for m in range(4)}
    round = Round(method, network, Key(0, 1))
    box = BallotBox(round, state, 5)  # nor can somebody by sending nothing
    box.put(stacked(list(delivered(round, state, four).values())), list(four))
    closed = box.close()
    assert_same(closed.state, state)
    assert closed.counted == [] and sorted(closed.refused) == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match="4"):  # nobody's noise: the configuration asks for what cannot be
        close_round(method, network, state, four, Key(0, 1))


LARGE = [FedAvg(), FedPAQ(), FedPAQ(bucket=8), Eden(), FetchSGD(columns=64, k=10), FedVote(train_float=True)]


@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 3e38, -3e38])
@pytest.mark.parametrize("method", LARGE, ids=str)
def test_no_number_that_clients_send_stops_a_run(method: Method, number: float) -> None:
    """After a round in which most clients sent it wherever they could, there is something to broadcast."""
    federation = Federation(method)
    network, state = federation.network, federation.start()
    for round in (1, 2, 3):
        down, frames = federation.frames(state, round, range(5))
        for client in range(4):
            key = Key(0, round, client)
            header = Header(round, client, network.fingerprint, type(method).__name__)
            codecs = method.wire(network).up(down, key)
            message = unpack(frames[client], header, codecs)
            floats = {n: torch.full_like(x, number) for n, x in message.items() if x.is_floating_point()}
            frames[client] = pack(header, message | floats, codecs)
        closed = close_round(method, network, state, frames, Key(0, round))
        if abs(number) > LARGEST:
            assert closed.counted == [4] and len(closed.refused) == 4
        state = closed.state
        assert all(value.isfinite().all() for value in state.values())
        down = read_broadcast(method, network, open_round(method, network, state, round + 1), round + 1)
        assert_same(down, method.broadcast(state))


@dataclass(frozen=True)
class Filled(FedAvg):
    number: float = 0.0

    def merge(self, state: State, key: Key) -> Merge:
        return AllAtOnce(lambda *_: {name: torch.full_like(value, self.number) for name, value in state.items()})


@pytest.mark.parametrize("number", [2 * LARGEST, -2 * LARGEST, float("inf"), -float("inf"), float("nan")])
def test_a_round_that_makes_what_cannot_be_broadcast_counts_for_nothing(number: float) -> None:
    federation = Federation(Filled(number=number))
    state = federation.start()
    _, frames = federation.frames(state, 1, range(5))
    closed = close_round(federation.method, federation.network, state, frames, Key(0, 1))
    assert_same(closed.state, state)
    assert closed.counted == []
    assert all("not numbers that training can continue from" in why for why in closed.refused.values())
