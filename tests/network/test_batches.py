"""A model is judged in batches of nearly equal size, none above the one asked for: their statistics normalise it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.core import Examples
from fedvote.network.round_metrics import score


@pytest.mark.parametrize(
    ("count", "batch", "expected"),
    [(10, 10, [10]), (11, 10, [6, 5]), (20, 10, [10, 10]), (9, 1000, [9]), (3, 1, [1, 1, 1]), (101, 50, [34, 34, 33])],
)
def test_all_examples_are_judged_in_even_batches(count: int, batch: int, expected: list[int]) -> None:
    seen: list[Tensor] = []

    def outputs(x: Tensor) -> Tensor:
        seen.append(x)
        return torch.zeros(len(x), 2)

    x = torch.arange(count).float()[:, None]
    score(outputs, Examples(x, torch.zeros(count, dtype=torch.long)), batch)
    assert [len(each) for each in seen] == expected
    assert torch.equal(torch.cat(seen), x)
