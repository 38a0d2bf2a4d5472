"""Local training: minimise the loss of a stack of clients, step by step.

The weights of K clients are rows of one tensor. A method says what one client minimises; here that is done for all of
them. Small networks take all clients in one call, by vmap; larger ones have work enough in a call of their own: on a
CPU one client after another on every core, on a GPU side by side (replay.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from fedvote import contracts
from fedvote.core import Batches
from fedvote.errors import ConfigError
from fedvote.network.network import Network, Vector, channels_last
from fedvote.system.threads import on_every_core
from fedvote.training.optimizer import optimizer_of

if TYPE_CHECKING:
    from fedvote.method import Method

SMALL = 100_000_000  # operations of a client's forward pass, below which clients share calls
SMALL_COMPILED = 1_000_000_000  # the same on a GPU, with kernels made for that

IMAGES = 5  # axes of a stack of batches of images

Loss = Callable[..., Tensor]
"""(*weights, x_B, y_B) -> () of one client; each of its weights is a vector, or the parts of one, a layer each."""


class Stack:
    """The weights of K clients, and the gradients of what each of them minimises."""

    def __init__(
        self,
        loss: Loss,
        start: Sequence[Tensor],
        together: bool = True,
        compiled: bool = False,
        sizes: Sequence[Sequence[int]] | None = None,
        rate: float | None = None,
    ):
        """`together`: all clients in one call of the loss, instead of a call each.

        `sizes`: of the parts in which a client's loss takes each of its weights, so that none has to be put together.
        `rate`: of a stack that is compiled together and needs no optimiser, since `gradients` takes its steps as well.
        """
        self.together, self.clients, self.rate = together, len(start[0]), rate
        loss = loss if compiled else partial(_one_number, loss)
        # all of it, since a compiled function inside of vmap would be run as it is
        self.losses: Loss = (lambda *arguments: vmap(loss)(*arguments)) if together else loss
        if rate is not None:
            self.losses = partial(_move, self.losses, rate)
        if compiled:
            self.losses = torch.compile(self.losses, dynamic=False)
        self._sizes = [list(parts) for parts in sizes or [[rows.shape[1]] for rows in start]]
        # a part of all clients lies in one piece, so that it can be a tensor of them all, or one of each
        self._blocks = [[part.clone(memory_format=torch.contiguous_format) for part in v] for v in self._parts(start)]
        if together:
            calls = [self._blocks]
        else:
            calls = [[[block[k] for block in blocks] for blocks in self._blocks] for k in range(self.clients)]
        self.weights = [[_leaves(parts, whole=sizes is None) for parts in vectors] for vectors in calls]
        self.leaves = [leaf for weights in self.weights for leaf in _flat(weights)]

    def put(self, start: Sequence[Tensor]) -> None:
        """Other weights in the same place, of as many clients or fewer."""
        for blocks, parts in zip(self._blocks, self._parts(start), strict=True):
            for block, part in zip(blocks, parts, strict=True):
                block[: len(part)] = part

    def take(self, clients: slice | Sequence[int], into: Sequence[Tensor]) -> None:
        """Copy the weights that these clients have by now to their rows of `into`."""
        for blocks, parts in zip(self._blocks, self._parts(into), strict=True):
            for block, part in zip(blocks, parts, strict=True):
                part[clients] = block[clients]

    def _parts(self, stacks: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        return [rows.split(sizes, dim=1) for rows, sizes in zip(stacks, self._sizes, strict=True)]

    def gradients(self, x_KB: Tensor, y_KB: Tensor) -> None:
        """Leave in every leaf the gradient of its client's loss on its own batch."""
        with torch.enable_grad():
            if self.together:
                self._gradients_of(0, x_KB, y_KB)
            else:
                x_KB = channels_last(x_KB) if x_KB.ndim == IMAGES else x_KB
                for client in range(self.clients):
                    self._gradients_of(client, x_KB[client], y_KB[client])

    def _gradients_of(self, call: int, x_B: Tensor, y_B: Tensor) -> None:
        weights = self.weights[call]
        if self.rate is not None:
            with torch.no_grad():
                self.losses(*weights, x_B, y_B)
            return
        leaves, loss = _flat(weights), self.losses(*weights, x_B, y_B)
        loss = loss.sum() if self.together else loss
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = None if gradient is None else gradient.contiguous()  # as fused optimisers need it


def _one_number(loss: Loss, *arguments: Any) -> Tensor:
    """What a client minimises, if it is that: a method may be a user's own."""
    value: Any = loss(*arguments)
    if not isinstance(value, Tensor) or value.ndim:
        found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else contracts.kind(value)
        raise ConfigError(f"what a client minimises, objective, gives {found}, expected one number: its loss")
    return value


def _move(losses: Loss, rate: float, *arguments: Any) -> Tensor:
    """Take a step, and give the sum of the losses before it: one function, which compiled needs fewer passes."""
    *weights, x, y = arguments
    total: Tensor
    gradients, total = grad_and_value(lambda given: losses(*given, x, y).sum())(weights)

    # theta <- theta - eta grad f(theta)
    for leaf, gradient in zip(_flat(weights), _flat(gradients), strict=True):
        leaf.sub_(gradient, alpha=rate)
    return total


def _leaves(parts: Sequence[Tensor], whole: bool) -> Vector:
    """The same places in memory, to take gradients of."""
    leaves = tuple(part.detach().requires_grad_() for part in parts)
    return leaves[0] if whole else leaves


def _flat(weights: Sequence[Vector]) -> list[Tensor]:
    return [leaf for weight in weights for leaf in ([weight] if isinstance(weight, Tensor) else weight)]


def descend(method: Method, network: Network, start: Sequence[Tensor], batches: Batches) -> list[Tensor]:
    """The rows of `start`, each (K, n), after a step of the method's optimiser on every batch."""
    if not batches.steps:
        return [rows.clone() for rows in start]
    if start[0].is_cuda:
        from fedvote.training.replay import replay_for  # which needs a GPU

        return _train(method, replay_for(method, network, start, batches), batches, _room_for(start))
    if is_small(network, batches.at(0)[0][0]):
        stack = Stack(partial(method.objective, network), start, sizes=parts_of(method, network, start))
        return _train(method, stack, batches, _room_for(start))
    return _client_by_client(method, network, start, batches)


def parts_of(method: Method, network: Network, start: Sequence[Tensor]) -> Sequence[Sequence[int]] | None:
    """The sizes of the parts in which to train, if what clients minimise was marked `layerwise`."""
    return network.sizes[: len(start)] if getattr(method.objective, "layerwise", False) else None


def is_small(network: Network, x_B: Tensor) -> bool:
    """Whether a client's step is too little work for calls of its own."""
    return network.operations(x_B) < (SMALL_COMPILED if network.compiled and x_B.is_cuda else SMALL)


def _room_for(start: Sequence[Tensor]) -> list[Tensor]:
    return [torch.empty(rows.shape, dtype=rows.dtype, device=rows.device) for rows in start]


def _train(method: Method, stack: Stack, batches: Batches, ended: list[Tensor]) -> list[Tensor]:
    """`ended`, filled with the rows of the clients after their last step."""
    optimizer = optimizer_of(method).make(stack.leaves) if stack.rate is None else None
    for step in range(batches.steps):
        stack.gradients(*batches.at(step))
        if optimizer:
            optimizer.step()
        # who has fewer steps than others is done: what becomes of its row after that is nobody's
        if ending := batches.ending(step):
            # all at once without a list of them, which would have to be sent to a GPU
            stack.take(slice(batches.clients) if len(ending) == batches.clients else ending, ended)
    return ended


def _client_by_client(method: Method, network: Network, start: Sequence[Tensor], batches: Batches) -> list[Tensor]:
    """One client after another; where there are several, on as many threads as there are cores."""
    ended = _room_for(start)
    networks: SimpleQueue[Network] = SimpleQueue()
    sizes = parts_of(method, network, start)

    def turn(client: int) -> None:
        mine = networks.get()  # no two threads may run one: it lends its module other weights while it runs
        begins, ends = ([rows[client : client + 1] for rows in stack] for stack in (start, ended))
        try:
            with torch.no_grad():
                stack = Stack(partial(method.objective, mine), begins, together=False, sizes=sizes)
                _train(method, stack, batches.of(client), ends)
        finally:
            networks.put(mine)

    for copy in _copies_of(network, min(torch.get_num_threads(), batches.clients)):
        networks.put(copy)
    on_every_core(turn, range(batches.clients))
    return ended


_copies: WeakKeyDictionary[Network, list[Network]] = WeakKeyDictionary()


def _copies_of(network: Network, many: int) -> list[Network]:
    kept = _copies.setdefault(network, [])
    while len(kept) < many:
        kept.append(network.to(network.start.voted.device))
    return kept[:many]
