"""Partitioners of the library `flwr-datasets`, by the name of their class: `flwr:DirichletPartitioner`.

They see a table with the columns `label` and, if the data name their writers, `writer`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.strata import strata
from fedvote.errors import ConfigError, DataError, reason


@dataclass(frozen=True)
class FlowerPartition(Partition):
    """A partitioner of Flower Datasets: flwr:IidPartitioner, flwr:DirichletPartitioner, ..."""

    partitioner: ClassVar[str] = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # of the partitioner, in its own names: alpha, ...

    @classmethod
    @cache
    def member(cls, name: str) -> type[FlowerPartition]:
        """The class for one partitioner."""
        body = {"partitioner": name, "registered_as": f"flwr:{name}", "__module__": __name__, "__doc__": cls.__doc__}
        return dataclass(frozen=True)(type(name, (cls,), body))

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        kind = self._kind()
        takes = inspect.signature(kind).parameters
        usual = {"num_partitions": clients, "partition_by": "label", "seed": int(rng.integers(2**31))}
        options = {name: value for name, value in usual.items() if name in takes} | dict(self.options)
        try:
            made = kind(**options)
            made.dataset = _table(data)
            if made.num_partitions < clients:
                raise ConfigError(f"it makes {made.num_partitions} parts, expected one for each of {clients} clients")
            return [np.sort(np.array(made.load_partition(client)["row"], np.int64)) for client in range(clients)]
        except Exception as error:
            raise DataError(
                f"partition flwr:{self.partitioner} with {options} cannot divide {data.name} ({reason(error)}): change "
                "partition.options, or choose another partition."
            ) from error

    def _kind(self) -> Any:
        try:
            library = importlib.import_module("flwr_datasets.partitioner")
        except ImportError as error:
            raise ConfigError(
                "partition flwr: needs flwr-datasets, which is not installed: pip install '.[flwr-datasets]' in a clone"
            ) from error
        known = [name for name in dir(library) if name.endswith("Partitioner") and name != "Partitioner"]
        if self.partitioner not in known:
            raise ConfigError(f"partition flwr:{self.partitioner} is not known; known: {', '.join(known)}")
        return getattr(library, self.partitioner)


def _table(data: Dataset) -> Any:
    columns = {"label": strata(data)[0], "row": np.arange(len(data.train))}
    if data.writers is not None:
        columns["writer"] = data.writers.cpu().numpy()
    return importlib.import_module("datasets").Dataset.from_dict(columns)
