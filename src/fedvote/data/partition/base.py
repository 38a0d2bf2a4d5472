"""The contract of a partitioner: divide the training examples among clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.settings import Settings


@dataclass(frozen=True)
class Partition(Settings, ABC):
    """Fields are hyperparameters. All randomness comes from the generator passed to `split`."""

    @abstractmethod
    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """The sorted int64 indices of each client's examples in `data.train`. No example has two clients."""
