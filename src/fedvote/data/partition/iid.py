"""Every client gets a random sample of all examples. Sizes differ by one at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition


@dataclass(frozen=True)
class IID(Partition):
    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        order = rng.permutation(len(data.train))
        return [np.sort(part) for part in np.array_split(order, clients)]
