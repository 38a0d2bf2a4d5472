"""Local training: minimise the losses of a stack of clients, step by step.

The weights of K clients are rows of one tensor, and the method defines the loss of one client. With a small network all
clients share one call, by vmap. With a larger network each client has its own call: on a CPU one client per core, on a
GPU side by side (replay.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from fedvote.core import Batches
from fedvote.network.network import Network
from fedvote.system.threads import on_every_core
from fedvote.training.optimizer import optimizer_of
from fedvote.training.stack import Loss, Stack

if TYPE_CHECKING:
    from fedvote.method import Method

SMALL = 100_000_000  # clients share calls if one client's forward pass has fewer operations
SMALL_COMPILED = 1_000_000_000  # the same on a GPU with compiled kernels


def descend(
    method: Method,
    network: Network,
    start: Sequence[Tensor],
    batches: Batches,
    rates: Sequence[float] | None = None,
) -> list[Tensor]:
    """Train from `start`, tensors of shape (K, n): one step of the method's optimiser on every batch.

    `rates`: the learning rate of each tensor of `start`, if they differ; not given: the method's.
    """
    if not batches.steps:
        return [rows.clone() for rows in start]
    if start[0].is_cuda and network.trial.stackable:
        from fedvote.training.replay import replay_for  # needs a GPU

        replay = replay_for(method, network, start, batches, same_rate=not rates or len(start) == 1)
        return _train(method, replay, batches, _empty_like(start), rates)
    if is_small(network, batches.at(0)[0][0]):
        stack = Stack(loss_of(method, network), start, sizes=parts_of(method, network, start))
        return _train(method, stack, batches, _empty_like(start), rates)
    return _client_by_client(method, network, start, batches, rates)


def loss_of(method: Method, network: Network) -> Loss:
    """One client's loss: (*weights, x_B, y_B), and then the bits of its dropout, if the network has dropout."""
    objective = partial(method.objective, network)
    if not network.trial.dropout:
        return objective

    def dropped(*arguments: Any) -> Tensor:
        *others, noise = arguments
        with network.dropping(noise):
            return objective(*others)

    return dropped


def parts_of(method: Method, network: Network, start: Sequence[Tensor]) -> Sequence[Sequence[int]] | None:
    """Sizes of the parts to train in, if the method's objective is marked `layerwise`; else None."""
    if not getattr(method.objective, "layerwise", False):
        return None
    lengths = [rows.shape[1] for rows in start]
    # a vector that is not the network's, such as a constant of the round, stays whole
    return [
        layers if layers and sum(layers) == length else [length]
        for length, layers in zip_longest(lengths, network.sizes[: len(start)])
    ]


def is_small(network: Network, x_B: Tensor) -> bool:
    """Whether one client's step is too little work for a call of its own, and clients can share one."""
    limit = SMALL_COMPILED if network.compiled and x_B.is_cuda else SMALL
    return network.trial.stackable and network.operations(x_B) < limit


def _empty_like(start: Sequence[Tensor]) -> list[Tensor]:
    return [torch.empty(rows.shape, dtype=rows.dtype, device=rows.device) for rows in start]


def _train(
    method: Method, stack: Stack, batches: Batches, ended: list[Tensor], rates: Sequence[float] | None
) -> list[Tensor]:
    """Take all steps; write each client's weights after its last step to `ended`, and return it."""
    chosen, optimizer = optimizer_of(method, batches.rate), None
    if stack.rate is None:
        optimizer = chosen.make(stack.groups(rates and [rate * batches.rate for rate in rates]))
    else:
        stack.rate.fill_(chosen.lr)
    for step in range(batches.steps):
        stack.gradients(*batches.at(step))
        if optimizer:
            optimizer.step()
        # a client with fewer steps is copied now; its row goes on changing, and nobody reads it
        if ending := batches.ending(step):
            # a slice for all clients: a list would have to be sent to the GPU
            stack.take(slice(batches.clients) if len(ending) == batches.clients else ending, ended)
    return ended


def _client_by_client(
    method: Method, network: Network, start: Sequence[Tensor], batches: Batches, rates: Sequence[float] | None
) -> list[Tensor]:
    """Train clients one at a time on every core."""
    ended = _empty_like(start)
    networks: SimpleQueue[Network] = SimpleQueue()
    sizes = parts_of(method, network, start)

    def turn(client: int) -> None:
        mine = networks.get()  # one per thread: a call swaps the weights of its module
        first, last = ([rows[client : client + 1] for rows in stack] for stack in (start, ended))
        try:
            with torch.no_grad():
                stack = Stack(loss_of(method, mine), first, together=False, sizes=sizes)
                _train(method, stack, batches.of(client), last, rates)
        finally:
            networks.put(mine)

    for copy in _copies_of(network, min(torch.get_num_threads(), batches.clients)):
        networks.put(copy)
    on_every_core(turn, range(batches.clients))
    return ended


_copies: WeakKeyDictionary[Network, list[Network]] = WeakKeyDictionary()


def _copies_of(network: Network, count: int) -> list[Network]:
    kept = _copies.setdefault(network, [])
    while len(kept) < count:
        kept.append(network.to(network.start.voted.device))
    return kept[:count]
