"""The weights of a stack of clients, as tensors to differentiate by, and the gradients of their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedvote import contracts
from fedvote.errors import ConfigError
from fedvote.network.channels_last import channels_last
from fedvote.network.slots import Vector

IMAGES = 5  # axes of a stack of image batches

Loss = Callable[..., Tensor]
"""One client's loss: (*weights, x_B, y_B) -> scalar. Each of `weights` is a flat vector, or its parts by layer."""


class Stack:
    """The weights of K clients, and the gradients of their losses."""

    def __init__(
        self,
        loss: Loss,
        start: Sequence[Tensor],
        together: bool = True,
        compiled: bool = False,
        sizes: Sequence[Sequence[int]] | None = None,
        rate: float | None = None,
    ):
        """`together`: one call of the loss for all clients, instead of one call per client.

        `sizes`: part sizes, if the loss takes each weight vector in parts; None: it takes whole vectors.
        `rate`: learning rate, if `gradients` also takes the step. Such a stack is compiled and has no optimiser.
        """
        self.together, self.clients = together, len(start[0])
        # a tensor: a recording reads it again in every step, so that a schedule can change it
        self.rate = None if rate is None else torch.tensor(rate, device=start[0].device)
        loss = loss if compiled else partial(_scalar, loss)
        # compile vmap as well: inside vmap, a compiled function would run uncompiled
        stacked: Loss = (lambda *arguments: vmap(loss)(*arguments)) if compiled else partial(_stacked, loss)
        self.losses: Loss = stacked if together else loss
        if rate is not None:
            self.losses = partial(_step, self.losses)
        if compiled:
            self.losses = torch.compile(self.losses, dynamic=False)
        self._sizes = [list(parts) for parts in sizes or [[rows.shape[1]] for rows in start]]
        # each layer is contiguous across clients: usable as one tensor of all clients, or as one of each
        self._blocks = [[part.clone(memory_format=torch.contiguous_format) for part in v] for v in self._parts(start)]
        if together:
            calls = [self._blocks]
        else:
            calls = [[[block[k] for block in blocks] for blocks in self._blocks] for k in range(self.clients)]
        self.weights = [[_leaves(parts, whole=sizes is None) for parts in vectors] for vectors in calls]
        self.leaves = [leaf for weights in self.weights for leaf in _flat(weights)]

    def groups(self, rates: Sequence[float] | None) -> list[Any]:
        """The leaves for an optimiser; with `rates`, those of each weight vector have their own learning rate."""
        if not rates or len(self.weights[0]) == 1:
            return self.leaves
        return [
            {"params": [leaf for weights in self.weights for leaf in _flat([weights[vector]])], "lr": rate}
            for vector, rate in zip(range(len(self.weights[0])), rates, strict=False)
        ]

    def put(self, start: Sequence[Tensor]) -> None:
        """Overwrite the weights in place, with those of as many clients or fewer."""
        for blocks, parts in zip(self._blocks, self._parts(start), strict=True):
            for block, part in zip(blocks, parts, strict=True):
                block[: len(part)] = part

    def take(self, clients: slice | Sequence[int], into: Sequence[Tensor]) -> None:
        """Copy the current weights of these clients to their rows of `into`."""
        for blocks, parts in zip(self._blocks, self._parts(into), strict=True):
            for block, part in zip(blocks, parts, strict=True):
                part[clients] = block[clients]

    def _parts(self, stacks: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        return [rows.split(sizes, dim=1) for rows, sizes in zip(stacks, self._sizes, strict=True)]

    def gradients(self, x_KB: Tensor, *others_K: Tensor) -> None:
        """Store in every leaf the gradient of its client's loss on that client's batch."""
        with torch.enable_grad():
            if self.together:
                self._gradients_of(0, x_KB, *others_K)
            else:
                x_KB = channels_last(x_KB) if x_KB.ndim == IMAGES else x_KB
                for client in range(self.clients):
                    self._gradients_of(client, x_KB[client], *(each[client] for each in others_K))

    def _gradients_of(self, call: int, *batch: Tensor) -> None:
        weights = self.weights[call]
        if self.rate is not None:
            with torch.no_grad():
                self.losses(self.rate, weights, *batch)
            return
        leaves, loss = _flat(weights), self.losses(*weights, *batch)
        loss = loss.sum() if self.together else loss
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = None if gradient is None else gradient.contiguous()  # fused optimisers need it


def _stacked(loss: Loss, *arguments: Any) -> Tensor:
    """The losses of all clients in one call."""
    with sdpa_kernel(SDPBackend.MATH):  # fused kernels of attention cannot be stacked
        losses: Tensor = vmap(loss)(*arguments)
        return losses


def _scalar(loss: Loss, *arguments: Any) -> Tensor:
    """One client's loss. A user's own method may return something that is no scalar: refuse it."""
    value: Any = loss(*arguments)
    if not isinstance(value, Tensor) or value.ndim:
        found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else contracts.kind(value)
        raise ConfigError(f"the method's objective returns {found}, expected one number: the client's loss")
    return value


def _step(losses: Loss, rate: Tensor, weights: Sequence[Vector], *batch: Tensor) -> Tensor:
    """Take one step of SGD and return the sum of the losses before it. One function compiles to fewer passes."""
    total: Tensor
    gradients, total = grad_and_value(lambda given: losses(*given, *batch).sum())(list(weights))

    # theta <- theta - eta grad f(theta)
    for leaf, gradient in zip(_flat(weights), _flat(gradients), strict=True):
        leaf.sub_(rate * gradient)
    return total


def _leaves(parts: Sequence[Tensor], whole: bool) -> Vector:
    """Leaf tensors for autograd that share the memory of `parts`."""
    leaves = tuple(part.detach().requires_grad_() for part in parts)
    return leaves[0] if whole else leaves


def _flat(weights: Sequence[Vector]) -> list[Tensor]:
    return [leaf for weight in weights for leaf in ([weight] if isinstance(weight, Tensor) else weight)]
