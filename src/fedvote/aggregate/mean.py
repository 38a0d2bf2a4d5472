"""The weighted mean: McMahan et al., 2017. One hostile client can move it anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.aggregate.aggregate import Coordinatewise


@dataclass(frozen=True)
class Mean(Coordinatewise):
    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        return weighted_sum(weights_K, rows_KD)


def weighted_sum(weights_K: Tensor, rows_KD: Tensor) -> Tensor:
    """(D,) sum_k w_k x_k, one client at a time: no copy of rows of any type, and a fixed order of sums.

    On a GPU floats are one matrix product instead of calls per client; its order of sums is fixed too.
    """
    if rows_KD.is_cuda and rows_KD.dtype == weights_K.dtype == torch.float32:
        return weights_K @ rows_KD
    total_D = torch.zeros(
        rows_KD.shape[1], dtype=torch.promote_types(rows_KD.dtype, torch.float32), device=rows_KD.device
    )
    for weight, row_D in zip(weights_K, rows_KD, strict=True):
        total_D += weight * row_D
    return total_D
