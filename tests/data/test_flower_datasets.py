"""Partitioners of Flower Datasets divide the data, for every task."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import fedvote
from fedvote.core import Dataset
from fedvote.data import from_arrays
from fedvote.data.partition import FlowerPartition, divide
from fedvote.data.strata import strata
from fedvote.errors import FedVoteError
from fedvote.randomness import Key
from fedvote.runs.config import parse
from fedvote.runs.toml_tables import as_table, to_toml


class RoundRobinPartitioner:
    """Deals rows by the label, as a partitioner of Flower Datasets would."""

    def __init__(self, num_partitions: int, partition_by: str, offset: int = 0):
        self.num_partitions, self.by, self.offset = num_partitions, partition_by, offset
        self.dataset: Any = None

    def load_partition(self, client: int) -> dict[str, Any]:
        rows = [
            row
            for row, label in zip(self.dataset["row"], self.dataset[self.by], strict=True)
            if (row + label + self.offset) % self.num_partitions == client
        ]
        return {"row": rows}


@pytest.fixture
def fake_flower_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    partitioner, datasets = types.ModuleType("flwr_datasets.partitioner"), types.ModuleType("datasets")
    partitioner.RoundRobinPartitioner = RoundRobinPartitioner  # type: ignore[attr-defined]
    datasets.Dataset = types.SimpleNamespace(from_dict=dict)  # type: ignore[attr-defined]
    modules = {"flwr_datasets": types.ModuleType("x"), "flwr_datasets.partitioner": partitioner, "datasets": datasets}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def toy(clients: int = 3) -> Dataset:
    x, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    return from_arrays(x, y, x, y)


@pytest.mark.usefixtures("fake_flower_datasets")
def test_a_partitioner_of_flower_datasets_divides_the_data_and_is_written_back() -> None:
    config = parse("[partition]\nname = 'flwr:RoundRobinPartitioner'\noptions = {offset = 1}", "here")
    assert parse(to_toml(as_table(config)), "again") == config
    data = toy()
    parts = divide(config.partition, data, 3, Key(0).numpy("partition"))
    labels = strata(data)[0]
    for client, part in enumerate(parts):
        assert {(row + labels[row] + 1) % 3 for row in part} == {client}
    assert sorted(np.concatenate(parts).tolist()) == list(range(30))


@pytest.mark.usefixtures("fake_flower_datasets")
@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("NoPartitioner", {}, "partition flwr:NoPartitioner is not known; known: RoundRobinPartitioner"),
        ("RoundRobinPartitioner", {"alpha": 1}, "cannot divide custom .*alpha.*change partition.options"),
    ],
)
def test_partitioners_that_do_not_fit_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(FedVoteError, match=words):
        divide(FlowerPartition.member(name)(options), toy(), 3, Key(0).numpy("partition"))


def test_the_absence_of_flower_datasets_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flwr_datasets.partitioner", None)
    with pytest.raises(FedVoteError, match="needs flwr-datasets, which is not installed"):
        divide(FlowerPartition.member("IidPartitioner")(), toy(), 3, Key(0).numpy("partition"))


def test_a_real_partitioner_of_flower_datasets_gives_every_example_once() -> None:
    pytest.importorskip("flwr_datasets", reason="the extra `flwr-datasets` is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = divide(FlowerPartition.member("IidPartitioner")(), toy(), 3, Key(0).numpy("partition"))
    assert sorted(np.concatenate(parts).tolist()) == list(range(30))


@pytest.mark.parametrize("task", ["regression", "multi-label"])
def test_partitioners_divide_other_tasks_by_groups_of_targets(task: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=200) if task == "regression" else (rng.random((200, 4)) < 0.3).astype(int)
    x = rng.normal(size=(200, 2))
    data = from_arrays(x, y, x, y, task=task)
    groups, names = strata(data)
    assert groups.min() >= 0 and groups.max() < len(names) and len(np.unique(groups)) > 3
    for name in ("dirichlet", "shards", "uneven"):
        partition = fedvote.Plan.of(partition=name).partition
        parts = divide(partition, data, 5, Key(0).numpy("partition"))
        assert sorted(np.concatenate(parts).tolist()) == list(range(200))
