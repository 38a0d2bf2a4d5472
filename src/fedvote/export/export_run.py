"""Export the network of a finished run."""

from __future__ import annotations

from pathlib import Path

import torch

from fedvote.core import Dataset
from fedvote.errors import ConfigError
from fedvote.export import c, onnx
from fedvote.export.c.compiled import can_compile
from fedvote.export.exported import Exported
from fedvote.export.network_file import load_network
from fedvote.randomness import Key
from fedvote.runs.experiment import dataset
from fedvote.runs.folder import RunFolder

FORMATS = {"onnx": (onnx.export_onnx, onnx.accuracy), "c": (c.export_c, c.accuracy)}
"""Each format's functions to write a network and to measure its accuracy."""
CALIBRATED_ON = 200  # training inputs that set the ranges of 8-bit activations


def export_run(
    run: Path, to: str = "onnx", out: Path | None = None, int8: bool = False, test: bool = False, trust: bool = False
) -> tuple[Exported, float | None]:
    """Export the network of `run`, a run folder or a network file. Returns the export and its test accuracy.

    `int8`: 8-bit activations; `test`: measure the accuracy (else None). Both need the folder and the run's data.
    `trust`: run the FILE.py that the run's files name.
    """
    if to not in FORMATS:
        raise ConfigError(f"there is no format {to!r}; known: {', '.join(FORMATS)}")
    write, accuracy = FORMATS[to]
    if test and to == "c" and not can_compile():
        raise ConfigError("--test needs a C compiler for C files, and there is none: install one, or omit --test")
    network = load_network(run, trust=trust)
    data = _data(run, trust) if int8 or test else None
    inputs = None
    if int8 and data:
        order = torch.randperm(len(data.train), generator=Key(0).torch("int8"))
        inputs = data.train.x[order[:CALIBRATED_ON]]
    folder = out if out and out.is_dir() else run if run.is_dir() else run.parent
    exported = write(network, out if out and not out.is_dir() else folder / f"network{'-int8' * int8}.{to}", inputs)
    return exported, accuracy(exported.path, data.test) if test and data else None


def _data(run: Path, trust: bool) -> Dataset:
    config = RunFolder(run, trust).config() if run.is_dir() else None
    if config is None:
        raise ConfigError(f"{run} is no run folder, so its data are unknown: give the folder with config.toml")
    return dataset(config.data.name)
