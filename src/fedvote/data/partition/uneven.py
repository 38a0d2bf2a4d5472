"""Uneven classes, uneven sizes: the clients' shares of each class are drawn from a Dirichlet distribution.

M. Yurochkin et al.: Bayesian nonparametric federated learning of neural networks, ICML 2019, section 4. The smaller
alpha, the fewer clients have most of a class, and the more sizes differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.partition.dirichlet import deal
from fedvote.data.strata import strata
from fedvote.errors import DataError
from fedvote.settings import check_above_zero, check_at_least

TRIES = 1000  # draws before giving up


@dataclass(frozen=True)
class Uneven(Partition):
    alpha: float = 0.5  # the smaller, the fewer clients share a class
    min_samples: int = 10  # draw again if a client has fewer

    def __post_init__(self) -> None:
        check_above_zero(self, "alpha")
        check_at_least(self, min_samples=0)

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        y, groups = strata(data)
        pool_C = np.bincount(y, minlength=len(groups))
        for _ in range(TRIES):
            # q_c ~ Dir(alpha 1_N)
            shares_CN = rng.dirichlet(np.full(clients, self.alpha), size=len(pool_C))
            ends_CN = np.rint(shares_CN.cumsum(axis=1) * pool_C[:, None]).astype(np.int64)
            ends_CN[:, -1] = pool_C
            counts_NC = np.diff(ends_CN, axis=1, prepend=0).T
            if counts_NC.sum(axis=1).min() >= self.min_samples:
                return deal(y, counts_NC, rng)
        raise DataError(
            f"none of {TRIES} divisions of {len(y)} samples by {self} gives each of {clients} clients min_samples: "
            "ask for fewer clients, a smaller min_samples or a larger alpha."
        )
