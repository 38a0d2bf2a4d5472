"""Trackers: every number of a run, sent to TensorBoard, MLflow or Weights & Biases. Each is an extra."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError, did_you_mean
from fedvote.rounds.snapshot import Snapshot

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
    module, begin = TRACKERS[name]
    try:
        library = importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the tracker {name} needs {name}, which is not installed: pip install '.[{name}]' in a clone"
        ) from error
    return _tracked(snapshots, lambda stack: begin(library, stack, Path(folder), dict(settings or {})))


def _tracked(snapshots: Iterable[Snapshot], begin: Callable[[ExitStack], Log]) -> Iterator[Snapshot]:
    with ExitStack() as stack:
        log: Log | None = None
        for snapshot in snapshots:
            log = log or begin(stack)  # after the first round: a run that cannot start leaves nothing behind
            log(snapshot.round, numbers(snapshot.record))
            yield snapshot


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a round, and those that its method measured."""
    flat = {**record, **record.get("measured", {}), "refused": len(record.get("refused", ()))}
    kinds = (int, float)
    return {name: value for name, value in flat.items() if type(value) in kinds and name != "round"}


def _tensorboard(library: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    writer = library.SummaryWriter(str(folder / "tensorboard"))
    stack.callback(writer.close)
    writer.add_text("settings", "\n".join(f"    {key} = {value}" for key, value in settings.items()))
    return lambda round, values: [writer.add_scalar(key, value, round) for key, value in values.items()]


def _mlflow(library: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    stack.enter_context(library.start_run(run_name=folder.name))
    library.log_params(settings)
    return lambda round, values: library.log_metrics(dict(values), step=round)


def _wandb(library: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    run = library.init(project="fedvote", name=folder.name, config=settings)
    stack.callback(run.finish)
    return lambda round, values: run.log(dict(values), step=round)


TRACKERS: dict[str, tuple[str, Callable[[Any, ExitStack, Path, dict[str, Any]], Log]]] = {
    "tensorboard": ("torch.utils.tensorboard", _tensorboard),
    "mlflow": ("mlflow", _mlflow),
    "wandb": ("wandb", _wandb),
}
"""Each tracker's module, and the function that begins to log."""
