"""Trackers: every number of a run, sent to TensorBoard, MLflow or Weights & Biases. Each is an extra."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.federation import Snapshot
from fedvote.registry import did_you_mean

Log = Callable[[int, Mapping[str, float]], object]
"""Takes the round and its numbers."""


def track(
    snapshots: Iterable[Snapshot], name: str, folder: Path | str = "runs", settings: Mapping[str, Any] | None = None
) -> Iterator[Snapshot]:
    """Send the numbers of each snapshot to a tracker, then yield it.

    name: tensorboard, mlflow or wandb
    folder: its last part names the run; TensorBoard writes into it
    settings: what made the run, shown beside it
    """
    if name not in TRACKERS:
        raise ConfigError(f"there is no tracker {name!r}; known: {', '.join(TRACKERS)}{did_you_mean(name, TRACKERS)}")
    return _tracked(snapshots, name, Path(folder), dict(settings or {}))


def _tracked(snapshots: Iterable[Snapshot], name: str, folder: Path, settings: dict[str, Any]) -> Iterator[Snapshot]:
    with ExitStack() as stack:
        log = TRACKERS[name](stack, folder, settings)
        for snapshot in snapshots:
            log(snapshot.round, numbers(snapshot.record))
            yield snapshot


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a round, and those that its method measured."""
    flat = {**record, **record.get("measured", {}), "refused": len(record.get("refused", ()))}
    kinds = (int, float)
    return {name: value for name, value in flat.items() if type(value) in kinds and name != "round"}


def _tensorboard(stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    writer = _library("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder / "tensorboard"))
    stack.callback(writer.close)
    writer.add_text("settings", "\n".join(f"    {key} = {value}" for key, value in settings.items()))
    return lambda round, values: [writer.add_scalar(key, value, round) for key, value in values.items()]


def _mlflow(stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    mlflow = _library("mlflow", "mlflow")
    stack.enter_context(mlflow.start_run(run_name=folder.name))
    mlflow.log_params(settings)
    return lambda round, values: mlflow.log_metrics(dict(values), step=round)


def _wandb(stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    run = _library("wandb", "wandb").init(project="fedvote", name=folder.name, config=settings)
    stack.callback(run.finish)
    return lambda round, values: run.log(dict(values), step=round)


TRACKERS: dict[str, Callable[[ExitStack, Path, dict[str, Any]], Log]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
}


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"--track {extra} needs {extra}, which is not installed: pip install '.[{extra}]' in a clone"
        ) from error
