"""The data on one machine of the federation, from a folder or a function. They never leave the machine.

    --node-config 'data="/srv/hospital"'          train.npz in it has x and y; test.npz, if any, held-out examples
    --node-config 'data="/srv/hospital.py:load"'  load() returns x and y, or also x and y of held-out examples

A node that names neither trains on its part of the configuration's dataset, as in the simulator. If the server has its
own data, such a node is refused.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedvote import contracts
from fedvote.core import Dataset, Examples
from fedvote.data import from_arrays
from fedvote.data.npz_folder import TEST, TRAIN, arrays, test_data
from fedvote.engines.flower.problem import Problem
from fedvote.errors import ConfigError, DataError
from fedvote.federation import Federation
from fedvote.registry import find
from fedvote.runs.config import Config
from fedvote.runs.experiment import federation
from fedvote.tasks.metrics import Accuracy, Metric

NO_DATA = "none"  # the server's option `data`, if no example is on the server


def clients_site(config: Config, problem: Problem, client: int, where: str, device: str) -> Federation:
    """The federation on a client's machine: only the client's own data are there."""
    if not where and problem.own_data:
        raise DataError(
            "this node names no data, but the server tests on its own data: start the node with its training data, "
            """--node-config 'data="FOLDER"', or start the job without `data`."""
        )
    if config.model.start not in ("seed", "given"):  # a file that the server alone needs: its first message is whole
        config = dataclasses.replace(config, model=dataclasses.replace(config.model, start="given"))
    if not where:
        return federation(config, device)
    x, y, *held_out = _call(where, "data") if _is_function(where) else _own(Path(where))
    x_test, y_test = held_out or (x[:1], y[:1])
    y, y_test = _by_name((y, y_test), problem)
    classes = problem.names or numbered(problem.classes)
    about = {"mean": problem.mean, "std": problem.std, "task": problem.task, "name": where}
    data = from_arrays(x, y, x_test, y_test, classes=classes, **about)  # type: ignore[arg-type]
    if not held_out:
        data = replace(data, test=data.test.rows(slice(0)))
    if data.shape != problem.shape:
        raise DataError(f"{where} has inputs of shape {data.shape}, expected {problem.shape}, as on the server.")
    if (kind := dtype_name(data.train)) != problem.dtype:
        raise DataError(
            f"{where} has inputs that count as {kind}, expected {problem.dtype}, as on the server: "
            "bytes (uint8) are divided by 255, all other types are used as float32, unscaled."
        )
    everything, nothing = torch.arange(len(data.train)), torch.arange(0)
    clients = range(config.federation.clients)
    return federation(config, device, data, [everything if number == client else nothing for number in clients])


def _by_name(labels: Sequence[Any], problem: Problem) -> Sequence[Any]:
    """Integer labels as strings, if all of them are names of classes; else they are the classes' numbers."""
    arrays = [np.asarray(y) for y in labels]
    if problem.task != "classification" or not problem.names or any(y.dtype.kind not in "iu" for y in arrays):
        return labels
    seen = {str(label) for y in arrays for label in np.unique(y)}
    return [y.astype(str) for y in arrays] if seen <= set(problem.names) else labels


def numbered(classes: int) -> tuple[str, ...]:
    """The names of classes that are numbered from 0."""
    return tuple(map(str, range(classes)))


def dtype_name(examples: Examples) -> str:
    """The type of the inputs: uint8 or float32."""
    return str(examples.x.dtype).removeprefix("torch.")


def servers_site(config: Config, where: str, device: str) -> Federation:
    """The federation on the server's machine: test examples, and no data of the clients."""
    if not where:
        return federation(config, device)
    if where == NO_DATA:
        site = federation(config, device, _no_data(config), [torch.arange(0)] * config.federation.clients)
        _check_counted(site.goal.metric)
        return site
    data = _call(where, "data") if _is_function(where) else test_data(Path(where))
    if not isinstance(data, Dataset):
        raise DataError(f"{where} returned {contracts.kind(data)}, expected a dataset made by fedvote.from_arrays.")
    site = federation(config, device, data, [torch.arange(0)] * config.federation.clients)
    if site.network.norms and not _is_function(where) and not (Path(where) / TRAIN).is_file():
        print(
            f"{where} has no {TRAIN}, so batch norm is calibrated on inputs of {TEST}: accuracy_calibrated "
            "depends on statistics of the test inputs",
            file=sys.stderr,
            flush=True,
        )
    return site


def _own(folder: Path) -> tuple[Any, ...]:
    """A client's training examples, and its held-out examples if there are any, by which it judges networks."""
    return (*arrays(folder / TRAIN), *(arrays(folder / TEST) if (folder / TEST).is_file() else ()))


def _no_data(config: Config) -> Dataset:
    """A dataset without examples, of the shape and classes that the configuration declares."""
    if (inputs := config.inputs) is None:
        raise DataError(
            "the server has no data, so the experiment must say what the inputs are: write a table [inputs] with shape "
            "and classes, and mean, std and dtype where clients' inputs are scaled."
        )
    if config.data.task not in (None, "classification"):
        raise ConfigError(
            f"data.task is {config.data.task}, but the server has no data, and clients can only count right classes: "
            "give the server test examples"
        )
    x = torch.zeros((0, *inputs.shape), dtype=getattr(torch, inputs.dtype))
    none = Examples(x, torch.zeros(0, dtype=torch.int64), inputs.mean, inputs.std)
    return Dataset(NO_DATA, none, none, inputs.classes)


def _check_counted(metric: Metric) -> None:
    """Refuse a metric that does not follow from the counts that leave a client."""
    if not isinstance(metric, Accuracy):
        raise ConfigError(
            f"metric is {metric.name}, but the server has no data, and clients only count right classes: use accuracy, "
            "or give the server test examples"
        )


def _is_function(where: str) -> bool:
    return where.rpartition(":")[0].endswith(".py")


def _call(where: str, what: str) -> Any:
    return find({}, where, what)()
