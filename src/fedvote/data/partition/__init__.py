"""Partitioners by name, and `divide`, which refuses divisions that cannot be trained on."""

from __future__ import annotations

import numpy as np

from fedvote.core import ConfigError, DataError, Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.partition.dirichlet import Dirichlet
from fedvote.data.partition.iid import IID
from fedvote.data.partition.shards import Shards
from fedvote.data.partition.writer import Writer

__all__ = ["IID", "PARTITIONS", "Dirichlet", "Partition", "Shards", "Writer", "divide"]

PARTITIONS: dict[str, type[Partition]] = {
    "iid": IID,
    "dirichlet": Dirichlet,
    "writer": Writer,
    "shards": Shards,
}


def divide(
    partition: Partition, data: Dataset, clients: int, rng: np.random.Generator, batch: int = 1
) -> list[np.ndarray]:
    """The indices of each client's training examples, at least a batch each."""
    if clients < 1:
        raise ConfigError(f"clients is {clients}, expected 1 or more.")
    if clients > len(data.train):
        has = f"{data.name} has {len(data.train)} training samples"
        raise DataError(f"{has}, too few for {clients} clients: ask for {len(data.train)} clients or fewer.")
    parts = partition.split(data, clients, rng)
    everyone = np.concatenate(parts)
    if len(np.unique(everyone)) < len(everyone):
        raise DataError(f"{partition} gives a sample to two clients, expected each to one: mend its split().")
    smallest = min(range(clients), key=lambda client: len(parts[client]))
    if len(parts[smallest]) < max(batch, 1):
        has = f"client {smallest} has {len(parts[smallest]) or 'no'} samples of {data.name} by {partition}"
        raise DataError(f"{has}, a batch is {batch}: ask for fewer clients, a smaller batch or a more even partition.")
    return parts
