"""Partitioners by name, and `divide`, which checks their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedvote import contracts
from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.partition.dirichlet import Dirichlet
from fedvote.data.partition.flower_datasets import FlowerPartition
from fedvote.data.partition.iid import IID
from fedvote.data.partition.shards import Shards
from fedvote.data.partition.uneven import Uneven
from fedvote.data.partition.writer import Writer
from fedvote.errors import ConfigError, DataError

__all__ = ["IID", "PARTITIONS", "Dirichlet", "FlowerPartition", "Partition", "Shards", "Uneven", "Writer", "divide"]

PARTITIONS: dict[str, type[Partition]] = {
    "iid": IID,
    "dirichlet": Dirichlet,
    "uneven": Uneven,
    "writer": Writer,
    "shards": Shards,
    "flwr": FlowerPartition,
}


def divide(partition: Partition, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The indices of each client's training examples. Every client has at least one."""
    if clients < 1:
        raise ConfigError(f"clients is {clients}, expected 1 or more.")
    if clients > len(data.train):
        has = f"{data.name} has {len(data.train)} training samples"
        raise DataError(f"{has}, too few for {clients} clients: ask for {len(data.train)} clients or fewer.")
    parts = _indices(partition, partition.split(data, clients, rng), clients, len(data.train))
    indices = np.concatenate(parts)
    if len(np.unique(indices)) < len(indices):
        raise DataError(f"{partition} gives a sample to two clients, expected one client for each: fix its split().")
    if empty := [client for client in range(clients) if not len(parts[client])]:
        has = f"client {empty[0]} has no samples of {data.name} by {partition}"
        raise DataError(f"{has}: ask for fewer clients, or a more even partition.")
    return parts


def _indices(partition: Partition, parts: Any, clients: int, samples: int) -> list[np.ndarray]:
    """Check what a partitioner returned, since it may be a user's own. Returns arrays of int64."""
    if not isinstance(parts, Sequence) or len(parts) != clients:
        found = f"{len(parts)} parts" if isinstance(parts, Sequence) else contracts.kind(parts)
        contracts.refuse(partition, "split", found, f"a list with the indices of each of the {clients} clients")
    arrays = [np.asarray(part) for part in parts]
    for client, part in enumerate(arrays):
        if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
            found = f"{part.dtype} of shape {part.shape} for client {client}"
            contracts.refuse(partition, "split", found, "a list of whole numbers")
        if part.size and not 0 <= part.min() <= part.max() < samples:
            found = f"client {client} examples {part.min()} to {part.max()}"
            contracts.refuse(partition, "split", found, f"0 to {samples - 1}")
    return [part.astype(np.int64, copy=False) for part in arrays]
