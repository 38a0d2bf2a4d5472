"""Export the network of a finished run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from fedvote.core import Dataset
from fedvote.errors import ConfigError, Doubt, FedVoteError
from fedvote.export import c, onnx, web
from fedvote.export.c.compiled import can_compile
from fedvote.export.exported import Exported, inputs_of
from fedvote.export.network_file import load_network
from fedvote.export.web.run_facts import run_facts
from fedvote.plan import Plan
from fedvote.randomness import Key
from fedvote.runs.folder import RunFolder
from fedvote.runs.judged_by import data_from, data_of_run
from fedvote.tasks.goal import Goal

FORMATS: dict[str, tuple[Callable[..., Exported], Callable[[Path, Tensor], NDArray[Any]]]] = {
    "onnx": (onnx.export_onnx, onnx.outputs),
    "c": (c.export_c, c.outputs),
    "web": (web.export_web, web.outputs),
}
"""Each format's functions to write a network and to run it on inputs."""
CALIBRATED_ON = 200  # training inputs that set the ranges of 8-bit activations


def export_run(
    run: Path,
    to: str = "onnx",
    out: Path | None = None,
    int8: bool = False,
    test: bool = False,
    trust: bool = False,
    data: str = "",
    runtime: Path | None = None,
) -> tuple[Exported, dict[str, float]]:
    """Export the network of `run`, a run folder or a network file. Returns the export, and how it does on test data.

    `int8`: 8-bit activations; `test`: measure the run's metric, by its name. Both need the folder and the run's data,
    which then also check the export instead of random inputs.
    `trust`: run the FILE.py that the run's files name. `data`: a dataset, FILE.py:NAME or a folder with test.npz,
    instead of the data that the run was judged by. `runtime`: for a page, the package of ONNX Runtime Web as a file.
    """
    if to not in FORMATS:
        raise ConfigError(f"there is no format {to!r}; known: {', '.join(FORMATS)}")
    write, outputs = FORMATS[to]
    if test and to == "c" and not can_compile():
        raise ConfigError("--test needs a C compiler for C files, and there is none: install one, or omit --test")
    if runtime is not None and to != "web":
        raise ConfigError(f"--runtime is for pages, and the format is {to}: omit it, or export --to web")
    network = load_network(run, trust=trust)
    examples = _examples(run, trust, data) if int8 or test or data else None
    ranges = None
    if int8 and examples:
        order = torch.randperm(len(examples.train), generator=Key(0).torch("int8"))
        ranges = examples.train.x[order[:CALIBRATED_ON]]
    if to == "web":
        examples = examples or _examples_if_here(run, trust)
        write = partial(write, data=examples, runtime=runtime, **run_facts(run, trust))
    else:
        write = partial(write, inputs=inputs_of(examples))
    exported = write(network, _target(run, out, to, int8), ranges)
    if not (test and examples):
        return exported, {}
    goal = _goal(run, trust, examples)
    value = goal.judge(torch.from_numpy(outputs(exported.path, examples.test.x)), examples.test.y)
    return exported, {goal.metric.name: value}


def _target(run: Path, out: Path | None, to: str, int8: bool) -> Path:
    """The file to write, or a page's folder. A path without an ending is a folder, which is made if there is none."""
    beside = run if run.is_dir() else run.parent
    if to == "web":
        return out or beside / f"web{'-int8' * int8}"
    name = f"network{'-int8' * int8}.{to}"
    if out is None:
        return beside / name
    return out / name if out.is_dir() or not out.suffix else out


def _examples_if_here(run: Path, trust: bool) -> Dataset | None:
    """The data of the run, if they are here: a page can do without them."""
    try:
        return _examples(run, trust, "")
    except FedVoteError as error:
        reason = str(error).rstrip(".")
        guesses = "how inputs look" if run.is_dir() else "how inputs look, and that outputs are classes"
        warnings.warn(f"the page guesses {guesses}, because {reason}", Doubt, stacklevel=3)
        return None


def _examples(run: Path, trust: bool, data: str) -> Dataset:
    """The data that the user names, or those that the run was judged by: never any others."""
    if data:
        return data_from(data)
    if not run.is_dir():
        raise ConfigError(
            f"{run} is not a run folder, so its data are unknown: give the folder, or name the data (--data)"
        )
    return data_of_run(RunFolder(run, trust))


def _goal(run: Path, trust: bool, data: Dataset) -> Goal:
    """The goal of the run; of a file that stands alone, the usual one for the data."""
    plan = (RunFolder(run, trust).config() if run.is_dir() else None) or Plan()
    return Goal.of(plan.loss, plan.metric, data)
