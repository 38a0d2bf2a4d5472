"""What a partitioner is: a rule that deals the training examples to clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset


@dataclass(frozen=True)
class Partition(ABC):
    """Hyperparameters as fields; all randomness comes from the generator that `split` is given."""

    @abstractmethod
    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """For each client the sorted int64 indices of its examples in `data.train`; no example has two clients."""


def labels(data: Dataset) -> np.ndarray:
    return np.asarray(data.train.y.cpu().numpy())
