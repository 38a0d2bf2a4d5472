"""One client per writer, with all examples of that writer, for datasets that name the writers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.errors import DataError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Writer(Partition):
    min_samples: int = 1  # writers with fewer examples are left out

    def __post_init__(self) -> None:
        check_at_least(self, min_samples=1)

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        if data.writers is None:
            raise DataError(f"{data.name} does not name its writers: choose another partition, such as dirichlet.")
        writers = data.writers.cpu().numpy()
        names, counts = np.unique(writers, return_counts=True)
        eligible = names[counts >= self.min_samples]
        if len(eligible) < clients:
            have = f"{data.name} has {len(eligible)} writers with {self.min_samples} or more samples"
            raise DataError(f"{have}, too few for {clients} clients: ask for {len(eligible)} clients or fewer.")
        return [np.flatnonzero(writers == writer) for writer in rng.choice(eligible, clients, replace=False)]
