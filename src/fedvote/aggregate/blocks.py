"""Sums over a (K, D) stack, some columns at a time and in float64: no copy of the stack is made, nor a (K, K, D)."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 2**20  # numbers at a time, which stay in the cache of a CPU
BLOCK_ON_GPU = 2**24  # an eighth of a gigabyte in float64; smaller ones take a GPU longer to begin than to do


def blocks(rows_KD: Tensor, clients: int = 0) -> tuple[Tensor, ...]:
    """Neighbouring columns, as many at a time as a stack of so many clients (not given: its own) allows."""
    numbers = BLOCK_ON_GPU if rows_KD.is_cuda else BLOCK
    cut: tuple[Tensor, ...] = rows_KD.split(max(1, numbers // (clients or len(rows_KD))), dim=1)
    return cut


def combine(coefficients_K: Tensor, rows_KD: Tensor) -> Tensor:
    """sum_k c_k x_k, in float64."""
    return torch.cat([coefficients_K.double() @ block.double() for block in blocks(rows_KD)])


def squared_distances(rows_KD: Tensor, others_JD: Tensor) -> Tensor:
    """||x_k - y_j||^2, (K, J) in float64. By differences: norms and products would lose all digits of close rows
    that lie far from 0, and whoever sends a huge row could arrange that."""
    pairs = zip(blocks(rows_KD), blocks(others_JD, len(rows_KD)), strict=True)
    direct = "donot_use_mm_for_euclid_dist"
    parts = [torch.cdist(a.double(), b.double(), compute_mode=direct).square() for a, b in pairs]
    return torch.stack(parts).sum(0)


def distances(rows_KD: Tensor, point_D: Tensor) -> Tensor:
    """||x_k - y||, (K,) in float64."""
    pairs = zip(blocks(rows_KD), blocks(point_D[None], len(rows_KD)), strict=True)
    return torch.stack([(a.double() - b.double()).square().sum(1) for a, b in pairs]).sum(0).sqrt()
