"""Export the network of a finished run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.core import Dataset
from fedvote.errors import ConfigError
from fedvote.export import c, onnx
from fedvote.export.c.compiled import can_compile
from fedvote.export.exported import Exported
from fedvote.export.network_file import load_network
from fedvote.randomness import Key
from fedvote.runs.config import Config
from fedvote.runs.experiment import configured_data
from fedvote.runs.folder import RunFolder
from fedvote.tasks.goal import Goal

FORMATS: dict[str, tuple[Callable[..., Exported], Callable[[Path, Tensor], NDArray[Any]]]] = {
    "onnx": (onnx.export_onnx, onnx.outputs),
    "c": (c.export_c, c.outputs),
}
"""Each format's functions to write a network and to run it on inputs."""
CALIBRATED_ON = 200  # training inputs that set the ranges of 8-bit activations


def export_run(
    run: Path, to: str = "onnx", out: Path | None = None, int8: bool = False, test: bool = False
) -> tuple[Exported, dict[str, float]]:
    """Export the network of `run`, a run folder or a network file. Returns the export, and how it does on test data.

    `int8`: 8-bit activations; `test`: measure the run's metric, by its name. Both need the folder and the run's data.
    """
    if to not in FORMATS:
        raise ConfigError(f"there is no format {to!r}; known: {', '.join(FORMATS)}")
    write, outputs = FORMATS[to]
    if test and to == "c" and not can_compile():
        raise ConfigError("--test needs a C compiler for C files, and there is none: install one, or omit --test")
    network = load_network(run)
    config, data = _with_data(run) if int8 or test else (None, None)
    inputs = None
    if int8 and data:
        order = torch.randperm(len(data.train), generator=Key(0).torch("int8"))
        inputs = data.train.x[order[:CALIBRATED_ON]]
    folder = out if out and out.is_dir() else run if run.is_dir() else run.parent
    exported = write(network, out if out and not out.is_dir() else folder / f"network{'-int8' * int8}.{to}", inputs)
    if not (test and config and data):
        return exported, {}
    goal = Goal.of(config.loss, config.metric, data)
    value = goal.judge(torch.from_numpy(outputs(exported.path, data.test.x)), data.test.y)
    return exported, {goal.metric.name: value}


def _with_data(run: Path) -> tuple[Config, Dataset]:
    config = RunFolder(run).config() if run.is_dir() else None
    if config is None:
        raise ConfigError(f"{run} is no run folder, so its data are unknown: give the folder with config.toml")
    return config, configured_data(config.data)
