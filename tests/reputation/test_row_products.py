"""Products by blocks of rows are the products of whole matrices."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.reputation.row_products import ROWS, in_blocks, row_products


@pytest.mark.parametrize("K", [1, ROWS, ROWS + 1, 3 * ROWS - 5])
def test_products_by_blocks_are_the_products_of_all_rows(K: int) -> None:
    rows = torch.randint(-3, 4, (K, 50), generator=torch.Generator().manual_seed(K)).float()  # sums are exact
    found = row_products(rows, rows, Tensor.sign, Tensor.abs)
    assert torch.equal(found, rows.sign() @ rows.abs().T)
    assert torch.equal(in_blocks(rows, lambda some: some.abs().sum(1)), rows.abs().sum(1))
