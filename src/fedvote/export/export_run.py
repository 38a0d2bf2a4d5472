"""The network that a run left behind, written in another format."""

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
"""How each is written, and judged on examples."""
CALIBRATED_ON = 200  # training inputs, which the ranges of integers are taken from


def export_run(
    run: Path, to: str = "onnx", out: Path | None = None, int8: bool = False, test: bool = False
) -> tuple[Exported, float | None]:
    """Write the network of a run folder, or of its file alone; with `test`, also judge what was written.

    `int8`: with activations of eight bits. For that, and for `test`, the data of the run have to be there.
    """
    if to not in FORMATS:
        raise ConfigError(f"there is no format {to!r}; known: {', '.join(FORMATS)}")
    write, accuracy = FORMATS[to]
    if test and to == "c" and not can_compile():
        raise ConfigError("to judge a C file there has to be a C compiler, which is not here: export without --test")
    network = load_network(run)
    data = _data(run) if int8 or test else None
    inputs = None
    if int8 and data:
        lots = torch.randperm(len(data.train), generator=Key(0).torch("int8"))
        inputs = data.train.x[lots[:CALIBRATED_ON]]
    folder = out if out and out.is_dir() else run if run.is_dir() else run.parent
    made = write(network, out if out and not out.is_dir() else folder / f"network{'-int8' * int8}.{to}", inputs)
    return made, accuracy(made.path, data.test) if test and data else None


def _data(run: Path) -> Dataset:
    config = RunFolder(run).config() if run.is_dir() else None
    if config is None:
        raise ConfigError(
            f"{run} is no run folder, so that its data are not known: give the folder that has config.toml"
        )
    return dataset(config.data.name)
