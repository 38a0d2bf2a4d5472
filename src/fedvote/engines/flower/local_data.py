"""The data on one machine of the federation, from a folder or a function. They never leave the machine.

    --node-config 'data="/srv/hospital"'          train.npz in it has x and y
    --node-config 'data="/srv/hospital.py:load"'  load() returns x and y

A node that names neither trains on its part of the configuration's dataset, as in the simulator. If the server has its
own data, such a node is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch

from fedvote.core import Dataset, Examples
from fedvote.data import from_arrays
from fedvote.engines.flower.tasks import Problem
from fedvote.errors import DataError
from fedvote.federation import Federation
from fedvote.registry import find
from fedvote.runs.config import Config
from fedvote.runs.experiment import federation

TEST, CALIBRATION = "test.npz", "train.npz"  # the files in the server's folder


def clients_site(config: Config, problem: Problem, client: int, where: str, device: str) -> Federation:
    """The federation on a client's machine: only the client's own data are there."""
    if not where and problem.own_data:
        raise DataError(
            "this node names no data, but the server tests on its own data: start the node with its training data, "
            """--node-config 'data="FOLDER"', or start the job without `data`."""
        )
    if not where:
        return federation(config, device)
    x, y = _call(where, "data") if _is_function(where) else _arrays(Path(where) / "train.npz")
    classes, y = problem.names or numbered(problem.classes), _by_name(y, problem)
    about = {"mean": problem.mean, "std": problem.std, "task": problem.task, "name": where}
    data = from_arrays(x, y, x[:1], y[:1], classes=classes, **about)  # type: ignore[arg-type]
    if data.shape != problem.shape:
        raise DataError(f"{where} has inputs of shape {data.shape}, expected {problem.shape}, as on the server.")
    if (kind := dtype_name(data.train)) != problem.dtype:
        raise DataError(
            f"{where} has inputs that count as {kind}, expected {problem.dtype}, as on the server: "
            "bytes (uint8) are divided by 255, all other types are used as float32, unscaled."
        )
    if len(data.train) < config.local.batch:
        raise DataError(f"{where} has {len(data.train)} examples, expected a batch of {config.local.batch} at least.")
    everything, nothing = torch.arange(len(data.train)), torch.arange(0)
    clients = range(config.federation.clients)
    return federation(config, device, data, [everything if number == client else nothing for number in clients])


def _by_name(y: Any, problem: Problem) -> Any:
    """Integer labels as strings, if they are the names of classes; else they are the classes' numbers."""
    labels = np.asarray(y)
    if problem.task != "classification" or labels.dtype.kind not in "iu" or not problem.names:
        return y
    return labels.astype(str) if set(map(str, np.unique(labels))) <= set(problem.names) else y


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
    data = _call(where, "data") if _is_function(where) else _test_data(Path(where))
    if not isinstance(data, Dataset):
        raise DataError(f"{where} returned a {type(data).__name__}, expected a dataset made by fedvote.from_arrays.")
    site = federation(config, device, data, [torch.arange(0)] * config.federation.clients)
    if site.network.norms and not _is_function(where) and not (Path(where) / CALIBRATION).is_file():
        print(
            f"{where} has no {CALIBRATION}, so batch norm is calibrated on inputs of {TEST}: accuracy_calibrated "
            "depends on statistics of the test inputs",
            file=sys.stderr,
            flush=True,
        )
    return site


def _is_function(where: str) -> bool:
    return where.rpartition(":")[0].endswith(".py")


def _call(where: str, what: str) -> Any:
    return find({}, where, what)()


def _test_data(folder: Path) -> Dataset:
    """The examples in test.npz; those in train.npz, if there is one, calibrate batch norm."""
    x_test, y_test = _arrays(folder / TEST)
    calibration = folder / CALIBRATION
    x, y = _arrays(calibration) if calibration.is_file() else (x_test, y_test)
    with np.load(folder / TEST) as file:
        about: dict[str, Any] = {
            name: np.atleast_1d(file[name]).tolist() for name in ("classes", "mean", "std") if name in file
        }
        if "task" in file:
            about["task"] = str(file["task"])
    return from_arrays(x, y, x_test, y_test, name=str(folder), **about)


def _arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            return file["x"], file["y"]
    except FileNotFoundError as error:
        raise DataError(f"there is no {path}: write it with numpy.savez, with the arrays x and y.") from error
    except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
        raise DataError(f"{path} does not hold the arrays x and y ({error}): write it with numpy.savez.") from error
