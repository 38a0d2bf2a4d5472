"""Few classes each: examples are sorted by label and cut into shards, and every client gets some shards.

B. McMahan et al.: Communication-efficient learning of deep networks from decentralized data, AISTATS 2017, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.strata import strata
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Shards(Partition):
    shards_per_client: int = 2  # about the number of classes of a client

    def __post_init__(self) -> None:
        check_at_least(self, shards_per_client=1)

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        order = rng.permutation(len(data.train))
        by_label = order[np.argsort(strata(data)[0][order], kind="stable")]
        shards = np.array_split(by_label, clients * self.shards_per_client)
        dealt = rng.permutation(len(shards)).reshape(clients, self.shards_per_client)
        return [np.sort(np.concatenate([shards[shard] for shard in hand])) for hand in dealt]
