"""A recorded step is the step it recorded, whatever the weights, the batches and the number of clients."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from fedvote import FedAvg, FedVote
from fedvote.engines.simulate.chunks import Chunks
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.system.device import repeatable
from fedvote.training.descent import descend
from fedvote.training.replay import Recorded, Replay
from fedvote.training.stack import Stack
from tests.toy import batches, module, scaled

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
METHODS = pytest.mark.parametrize("method", [FedAvg(), FedVote(), FedVote(train_float=True)], ids=str)
TOGETHER = pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])


def stack_of(network: Network, clients: int, method: Method) -> list[Tensor]:
    """Different weights for every client."""
    many = 2 if isinstance(method, FedAvg) or getattr(method, "train_float", False) else 1
    vectors = (network.start.voted, network.start.floats)[:many]
    return [torch.stack([vector * (1 + 0.1 * k) for k in range(clients)]) for vector in vectors]


def rows_of(stack: Stack, like: list[Tensor]) -> list[Tensor]:
    """The weights of all clients by now."""
    rows = [torch.empty_like(each) for each in like]
    stack.take(slice(None), rows)
    return rows


@METHODS
def test_clients_one_by_one_have_the_gradients_they_have_together(method: Method) -> None:
    network = Network(module())
    start, loss = stack_of(network, 3, method), partial(method.objective, network)
    alone, together = Stack(loss, start, together=False), Stack(loss, start, together=True)
    for stack in (alone, together):
        stack.gradients(*batches(scaled(), [0, 1, 2]).at(0))
    for group, rows in enumerate(together.leaves):
        leaves = alone.leaves[group :: len(together.leaves)]
        one_by_one = torch.stack([leaf.grad for leaf in leaves if leaf.grad is not None])
        assert rows.grad is not None and rows.grad.abs().max() > 0
        torch.testing.assert_close(rows.grad, one_by_one)


@METHODS
@TOGETHER
def test_a_step_by_the_gradients_of_parts_is_that_by_the_gradients_of_vectors(method: Method, together: bool) -> None:
    network = Network(module())
    start, loss = stack_of(network, 3, method), partial(method.objective, network)
    sizes = network.sizes[: len(start)]
    whole, parts = (Stack(loss, start, together, sizes=given) for given in (None, sizes))
    assert len(parts.leaves) == sum(map(len, sizes)) * (1 if together else 3)
    for stack in (whole, parts):
        stack.gradients(*batches(scaled(), [0, 1, 2]).at(0))
        with torch.no_grad():
            for leaf in stack.leaves:
                assert leaf.grad is not None
                leaf -= leaf.grad
    for expected, found, before in zip(rows_of(whole, start), rows_of(parts, start), start, strict=True):
        torch.testing.assert_close(found, expected)
        assert not torch.equal(found, before)


@TOGETHER
@pytest.mark.parametrize("sizes", [None, [[1, 3], [2]]], ids=["vectors", "parts"])
def test_what_is_put_in_for_some_clients_is_taken_out_for_them(together: bool, sizes: list[list[int]] | None) -> None:
    stack = Stack(lambda *_: torch.zeros(()), [torch.zeros(3, 4), torch.zeros(3, 2)], together, sizes=sizes)
    stack.put([torch.arange(8.0).view(2, 4), torch.ones(2, 2)])
    taken = [torch.full((3, 4), -1.0), torch.full((3, 2), -1.0)]
    stack.take([2, 1], taken)
    assert taken[0].tolist() == [[-1] * 4, [4, 5, 6, 7], [0] * 4]
    assert taken[1].tolist() == [[-1] * 2, [1] * 2, [0] * 2]


def test_stepping_a_leaf_moves_its_clients_row_and_no_other() -> None:
    stack = Stack(lambda w, x, y: w.sum(), [torch.zeros(3, 4), torch.zeros(3, 2)], together=False)
    with torch.no_grad():
        stack.leaves[2] += 1  # the second client's
        stack.leaves[1] += 2
    voted, floats = rows_of(stack, [torch.ones(3, 4), torch.ones(3, 2)])
    assert voted.tolist() == [[0] * 4, [1] * 4, [0] * 4]
    assert floats.tolist() == [[2] * 2, [0] * 2, [0] * 2]


@needs_gpu
@METHODS
@TOGETHER
@pytest.mark.parametrize("by_parts", [True, False], ids=["parts", "vectors"])
def test_a_replay_has_the_bits_of_the_calls_it_recorded(method: Method, together: bool, by_parts: bool) -> None:
    with repeatable():
        network, drawn = Network(module()).to("cuda"), batches(scaled().to("cuda"), [0, 1, 2], steps=3)
        start, loss = stack_of(network, 3, method), partial(method.objective, network)
        sizes = network.sizes[: len(start)] if by_parts else None
        replay = Replay(loss, [torch.zeros_like(rows) for rows in start], drawn.at(0), together, sizes=sizes)
        replay.put(start)
        for step in range(3):
            replay.gradients(*drawn.at(step))
            called = Stack(loss, start, together, sizes=sizes)
            called.gradients(*replay.batch_K)
            for recorded, fresh in zip(replay.leaves, called.leaves, strict=True):
                assert recorded.grad is not None and fresh.grad is not None
                assert torch.equal(recorded.grad, fresh.grad) and fresh.grad.abs().max() > 0


@pytest.mark.parametrize(("clients", "fits"), [(32, False), (31, True), (16, True), (15, False), (1, False)])
def test_a_recording_fits_as_many_clients_and_up_to_half_fewer(clients: int, fits: bool) -> None:
    recorded = Recorded(FedVote(), [], SimpleNamespace(clients=31))  # type: ignore[arg-type]
    assert recorded.fits(FedVote(), [], clients) == fits
    assert not recorded.fits(FedAvg(), [], 31) and not recorded.fits(FedVote(), [((3,), torch.float32)], 31)


@needs_gpu
@METHODS
def test_later_rounds_and_smaller_cohorts_get_their_own_result_whatever_was_recorded(method: Method) -> None:
    with repeatable():
        network = Network(module()).to("cuda")
        for clients in ([0, 1, 2, 3], [4, 2], [1]):
            drawn = batches(scaled().to("cuda"), clients, steps=4)
            start = stack_of(network, len(clients), method)
            again = descend(method, Network(module()).to("cuda"), start, drawn)
            for kept, fresh in zip(descend(method, network, start, drawn), again, strict=True):
                torch.testing.assert_close(kept, fresh)


@pytest.mark.parametrize(
    ("most", "room", "expected"),
    [
        (10, 10, [7]),
        (3, 10, [3, 2, 2]),
        (7, 3, [3, 2, 2]),  # 7 fail, 3 go
        (10, 1, [1] * 7),
    ],
)
def test_chunks_are_halved_until_they_fit_and_every_client_has_one_turn(
    most: int, room: int, expected: list[int]
) -> None:
    cohort, network, turns = [3, 5, 8, 9, 11, 12, 20], Network(module()), []

    def turn(clients: list[int]) -> None:
        if len(clients) > room:
            raise torch.OutOfMemoryError
        turns.append(clients)

    chunks = Chunks(most)
    chunks.each(cohort, network, turn)  # type: ignore[arg-type]
    assert [client for clients in turns for client in clients] == cohort
    assert [len(clients) for clients in turns] == expected
    turns.clear()
    chunks.each(cohort, network, turn)  # type: ignore[arg-type]
    assert [len(clients) for clients in turns] == expected, "what fits is remembered"


def test_one_client_that_does_not_fit_is_an_error() -> None:
    def turn(clients: object) -> None:
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        Chunks(4).each([1, 2, 3], Network(module()), turn)
