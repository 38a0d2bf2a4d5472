"""Local training: minimise the loss of a stack of clients, step by step.

The parameters of K clients are rows of one tensor. The gradient of the sum of their losses is every client's own
gradient, and an element-wise optimiser steps all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedvote.core import Batches


def descend(
    loss: Callable[..., Tensor],
    start: Sequence[Tensor],
    batches: Batches,
    make_optimizer: Callable[[Sequence[Tensor]], torch.optim.Optimizer],
) -> list[Tensor]:
    """The rows of `start`, each (K, n), after a step on every batch; loss(*rows, x_KB, y_KB) is (K,)."""
    parameters = [rows.clone().requires_grad_() for rows in start]
    optimizer = make_optimizer(parameters)
    with torch.enable_grad():
        for step in range(batches.steps):
            optimizer.zero_grad()
            loss(*parameters, *batches.at(step)).sum().backward()
            optimizer.step()
    return [rows.detach() for rows in parameters]
