"""The mini-batches that clients train on in a round."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.core import Batches, Examples
from fedvote.errors import DataError
from fedvote.randomness import Key


def draw_order(rows: Tensor, count: int, key: Key) -> Tensor:
    """The order in which a client takes `count` examples: all of its own shuffled, and again until there are enough."""
    generator, n = key.torch("batches"), rows.shape[0]  # faster than len, for thousands of clients
    if not n:
        raise DataError(f"client {key.client} has no training examples; leave it out, or give it some")
    passes = [rows[torch.randperm(n, generator=generator)] for _ in range(max(1, -(-count // n)))]
    return (torch.cat(passes) if len(passes) > 1 else passes[0])[:count]


def draw_batches(
    examples: Examples,
    owned: Sequence[Tensor],
    steps: int | Sequence[int],
    batch: int,
    keys: Sequence[Key],
    orders: Sequence[Tensor] | None = None,
) -> Batches:
    """Every client's mini-batches, cut from its order of examples.

    Every client gets as many batches as the client with the most steps; more batches do not change the first ones.
    `orders`: the results of `draw_order` for at least as many examples, if they were drawn before.
    """
    device = examples.y.device
    steps_K = (steps,) * len(keys) if isinstance(steps, int) else tuple(steps)
    count = max(steps_K) * batch
    orders = orders or [draw_order(rows, count, key) for rows, key in zip(owned, keys, strict=True)]
    index_KSB = torch.stack([order[:count] for order in orders]).view(len(keys), max(steps_K), batch)
    samples_K = torch.tensor([rows.shape[0] for rows in owned], device=device)
    return Batches(examples, index_KSB.to(device), samples_K, steps_K=None if isinstance(steps, int) else steps_K)
