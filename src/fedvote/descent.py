"""Local training: minimise the loss of a stack of clients, step by step.

The weights of K clients are rows of one tensor. A method says what one client minimises; here that is done for all of
them: in one call by vmap, or in a call a client, as is faster. An element-wise optimiser steps them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from fedvote.core import Batches
from fedvote.network import Network

if TYPE_CHECKING:
    from fedvote.method import Method

Loss = Callable[..., Tensor]
"""(*weights, x_B, y_B) -> () of one client; each of its weights is a vector."""


class Stack:
    """The weights of K clients, and the gradients of what each of them minimises."""

    def __init__(self, loss: Loss, start: Sequence[Tensor], together: bool = True):
        """`together`: all clients in one call of the loss, instead of a call each."""
        self.loss, self.together, self.clients = loss, together, len(start[0])
        self.rows = [rows.clone() for rows in start]
        parts = [rows for rows in self.rows] if together else [row for rows in self.rows for row in rows]
        self.leaves = [part.detach().requires_grad_() for part in parts]

    def gradients(self, x_KB: Tensor, y_KB: Tensor) -> None:
        """Leave in every leaf the gradient of its client's loss on its own batch."""
        with torch.enable_grad():
            if self.together:
                self._gradients_of(self.leaves, vmap(self.loss)(*self.leaves, x_KB, y_KB).sum())
            else:
                for client in range(self.clients):
                    self.gradients_of_one(client, x_KB[client], y_KB[client])

    def gradients_of_one(self, client: int, x_B: Tensor, y_B: Tensor) -> None:
        leaves = self.leaves[client :: self.clients]
        self._gradients_of(leaves, self.loss(*leaves, x_B, y_B))

    @staticmethod
    def _gradients_of(leaves: Sequence[Tensor], loss: Tensor) -> None:
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves, allow_unused=True), strict=True):
            leaf.grad = gradient


def descend(method: Method, network: Network, start: Sequence[Tensor], batches: Batches) -> list[Tensor]:
    """The rows of `start`, each (K, n), after a step of the method's optimiser on every batch."""
    if start[0].is_cuda:
        from fedvote.replay import replay_for  # which needs a GPU

        stack: Stack = replay_for(method, network, start, batches)
    else:
        stack = Stack(partial(method.objective, network), start)
    optimizer = method.make_optimizer(stack.leaves)
    ended = [torch.empty_like(rows[: batches.clients]) for rows in stack.rows]
    for step in range(batches.steps):
        stack.gradients(*batches.at(step))
        optimizer.step()
        # who has fewer steps than others is done: what becomes of its row after that is nobody's
        if ending := batches.ending(step):
            for rows, final in zip(stack.rows, ended, strict=True):
                final[ending] = rows[ending]
    return ended
