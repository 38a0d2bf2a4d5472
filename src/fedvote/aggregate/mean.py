"""The mean, weighted: McMahan et al., 2017. One hostile client can move it anywhere."""

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
    """sum_k w_k x_k, a client at a time: no copy of the rows, whatever their type, and one order of the sums.

    On a GPU, where every client would be calls of its own, floats are one product, whose order is the same every time.
    """
    if rows_KD.is_cuda and rows_KD.dtype == weights_K.dtype == torch.float32:
        return weights_K @ rows_KD
    total_D = torch.zeros(
        rows_KD.shape[1], dtype=torch.promote_types(rows_KD.dtype, torch.float32), device=rows_KD.device
    )
    for weight, row_D in zip(weights_K, rows_KD, strict=True):
        total_D += weight * row_D
    return total_D
