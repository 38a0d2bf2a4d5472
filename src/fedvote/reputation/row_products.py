"""Products of the rows of large matrices, a block of rows at a time: no copy of a whole matrix is made.

Up to ROWS rows are one block, and one product.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ROWS = 64  # in a block

Prepare = Callable[[Tensor], Tensor]


def in_blocks(rows_Kn: Tensor, do: Callable[[Tensor], Tensor]) -> Tensor:
    """do(rows), where each row of the result follows from the same row alone."""
    return torch.cat([do(block_bn) for block_bn in rows_Kn.split(ROWS)])


def row_products(left_Kn: Tensor, right_Kn: Tensor, prepare_left: Prepare, prepare_right: Prepare) -> Tensor:
    """(K, K) the products of all rows, each prepared first: prepare_left(left) @ prepare_right(right).T."""
    blocks = [
        torch.cat([prepared_bn @ prepare_right(right_bn).T for right_bn in right_Kn.split(ROWS)], 1)
        for prepared_bn in map(prepare_left, left_Kn.split(ROWS))
    ]
    return torch.cat(blocks)
