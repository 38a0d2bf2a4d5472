"""Which examples a client trains on in a round, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.core import Batches, Examples
from fedvote.errors import DataError
from fedvote.randomness import Key


def draw_order(rows: Tensor, count: int, key: Key) -> Tensor:
    """A client's examples in the order in which it takes `count` of them: all in random order, again and again."""
    generator, n = key.torch("batches"), rows.shape[0]  # faster than len, for thousands of clients
    if not n:
        raise DataError(f"client {key.client} has no examples to train on; leave it out, or give it some")
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
    """Every client's mini-batches: its examples in random order, again and again, cut into batches.

    Where clients take different numbers of steps, all have as many batches as the longest turn needs; a client's first
    batches do not depend on that. `orders`: drawn before by `draw_order`, for at least as many examples.
    """
    device = examples.y.device
    steps_K = (steps,) * len(keys) if isinstance(steps, int) else tuple(steps)
    count = max(steps_K) * batch
    orders = orders or [draw_order(rows, count, key) for rows, key in zip(owned, keys, strict=True)]
    index_KSB = torch.stack([order[:count] for order in orders]).view(len(keys), max(steps_K), batch)
    samples_K = torch.tensor([rows.shape[0] for rows in owned], device=device)
    return Batches(examples, index_KSB.to(device), samples_K, steps_K=None if isinstance(steps, int) else steps_K)
