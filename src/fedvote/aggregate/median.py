"""The median of each coordinate: Yin et al., 2018. Withstands fewer than half; counts every client once.

For even K it is the mean of the two middle values, as in numpy; torch.median takes the lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.aggregate.aggregate import Coordinatewise, refuse_unequal
from fedvote.aggregate.blocks import blocks


@dataclass(frozen=True)
class Median(Coordinatewise):
    counts_heads: ClassVar[bool] = True

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        refuse_unequal(self, weights_K)
        return median(rows_KD)


def median(rows_KD: Tensor) -> Tensor:
    """(D,) by sorting blocks, for any number of weights: some versions of torch.quantile stop at 2^24 numbers."""
    low, high = (len(rows_KD) - 1) // 2, len(rows_KD) // 2

    # (x_(low) + x_(high)) / 2 of the sorted x_(0) <= ... <= x_(K-1)
    ordered = (block.sort(dim=0).values for block in blocks(rows_KD))
    return torch.cat([(block[low] + block[high]) / 2 for block in ordered])
