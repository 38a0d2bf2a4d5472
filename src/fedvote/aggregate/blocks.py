"""Sums over a (K, D) stack in float64, some columns at a time: without a copy of the stack or a (K, K, D) tensor."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 2**20  # numbers at a time, which fit a CPU's cache
BLOCK_ON_GPU = 2**24  # an eighth of a gigabyte in float64; smaller blocks cost a GPU more to launch than to compute


def blocks(rows_KD: Tensor, clients: int = 0) -> tuple[Tensor, ...]:
    """The stack cut into blocks of columns, sized for a stack of `clients` rows (0: its own number of rows)."""
    numbers = BLOCK_ON_GPU if rows_KD.is_cuda else BLOCK
    cut: tuple[Tensor, ...] = rows_KD.split(max(1, numbers // (clients or len(rows_KD))), dim=1)
    return cut


def combine(coefficients_K: Tensor, rows_KD: Tensor) -> Tensor:
    """(D,) sum_k c_k x_k, in float64."""
    return torch.cat([coefficients_K.double() @ block.double() for block in blocks(rows_KD)])


def squared_distances(rows_KD: Tensor, others_JD: Tensor) -> Tensor:
    """(K, J) ||x_k - y_j||^2, in float64, by subtraction.

    Norms and products would lose all digits of close rows far from 0, and a client could cause that by a huge row.
    """
    pairs = zip(blocks(rows_KD), blocks(others_JD, len(rows_KD)), strict=True)
    direct = "donot_use_mm_for_euclid_dist"
    parts = [torch.cdist(a.double(), b.double(), compute_mode=direct).square() for a, b in pairs]
    return torch.stack(parts).sum(0)


def distances(rows_KD: Tensor, point_D: Tensor) -> Tensor:
    """(K,) ||x_k - y||, in float64."""
    pairs = zip(blocks(rows_KD), blocks(point_D[None], len(rows_KD)), strict=True)
    return torch.stack([(a.double() - b.double()).square().sum(1) for a, b in pairs]).sum(0).sqrt()
