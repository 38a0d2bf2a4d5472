"""The mean, weighted: McMahan et al., 2017. One hostile client can move it anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedvote.aggregate.rule import Coordinatewise


@dataclass(frozen=True)
class Mean(Coordinatewise):
    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        # sum_k w_k x_k, a client at a time, and as sums: a matrix product may be computed in half precision
        total_D = rows_KD.new_zeros(rows_KD.shape[1])
        for weight, row_D in zip(weights_K, rows_KD, strict=True):
            total_D += weight * row_D
        return total_D
