"""Krum, and Multi-Krum for `select` above 1: the rows that are closest to their neighbours. Blanchard et al., 2017.

A row's score is the sum of its squared distances to the K - f - 2 nearest rows, as in the paper and in Flower. It
leaves out f + 1 others. At least one of those is honest, and no hostile neighbour is farther away than that one. ByzFL
takes the K - f nearest rows, the row itself among them: `neighbours` = K - f - 1 here. Its Multi-Krum averages K - f
rows: `select` = K - f.

The paper's proof needs K >= 2 f + 3; Flower does not check this, ByzFL requires K > 2 f. Every client counts once;
Flower weighs the selected rows by their examples. The first of equal scores wins: with one neighbour, K = 3 and f = 0,
the closest two rows always tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedvote.aggregate.aggregate import Aggregate, refuse_unequal
from fedvote.aggregate.blocks import squared_distances
from fedvote.errors import ConfigError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Krum(Aggregate):
    counts_heads: ClassVar[bool] = True
    byzantine: int = 1  # f, the number of hostile clients to withstand
    select: int = 1  # m, the number of rows to average; 1: Krum, more: Multi-Krum
    neighbours: int = 0  # the number of other rows in a score; 0: K - f - 2

    def __post_init__(self) -> None:
        check_at_least(self, byzantine=0, select=1, neighbours=0)

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        refuse_unequal(self, weights_K)
        self.check(len(rows_KD))
        neighbours = self.neighbours or len(rows_KD) - self.byzantine - 2

        # s_i = sum over the nearest j != i of ||x_i - x_j||^2; the row itself is first, at distance 0
        nearest_KK = squared_distances(rows_KD, rows_KD).sort(dim=1).values
        score_K = nearest_KK[:, 1 : 1 + neighbours].sum(1)

        # 1 / m sum over the m lowest s_i of x_i
        return rows_KD[score_K.argsort(stable=True)[: self.select]].mean(0)

    def check(self, K: int) -> None:
        f, needed = self.byzantine, 2 * self.byzantine + 3
        if needed > K:
            raise ConfigError(
                f"Krum with byzantine = {f} needs at least 2 x {f} + 3 = {needed} clients in a round, got {K}; "
                "take more clients or a smaller byzantine"
            )
        if self.select > K - f:
            raise ConfigError(
                f"select is {self.select}, expected at most {K - f}: with {f} hostile clients of {K}, more would "
                "always include a hostile client"
            )
        if self.neighbours > K - 1:
            raise ConfigError(f"neighbours is {self.neighbours}, but each of {K} clients has only {K - 1} others")
