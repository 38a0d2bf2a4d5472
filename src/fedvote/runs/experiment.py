"""From a configuration to a federation, and from its snapshots to a folder of results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedvote import contracts
from fedvote.core import Dataset, State
from fedvote.data import DATASETS, load
from fedvote.data.hugging_face import PREFIX, load_hugging_face
from fedvote.data.partition import divide
from fedvote.data.show import picture
from fedvote.data.validation import hold_out
from fedvote.errors import ConfigError, DataError, FedVoteError, reason
from fedvote.export.network_file import save_network
from fedvote.federation import Federation
from fedvote.models import make_model
from fedvote.randomness import Key
from fedvote.registry import find
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import check_snapshot
from fedvote.runs.config import Config, DataConfig, read
from fedvote.runs.evaluation_file import write_evaluation
from fedvote.runs.folder import RunFolder
from fedvote.runs.full_keys import full_keys, keys_of
from fedvote.runs.own_files import changed

if TYPE_CHECKING:
    from rich.console import RenderableType
    from torch import Tensor


def configure(
    source: str | None, settings: Sequence[str], out: Path | None, resume: bool, trust: bool = False
) -> tuple[Config, RunFolder]:
    """The configuration to run, and its folder. Resuming a folder without a source takes the folder's configuration.

    `trust`: the folder's configuration may run the FILE.py that it names.
    """
    if resume and source is None:
        if out is None:
            raise ConfigError("--resume names no run: give the folder of the run to resume, --resume --out DIR")
        folder = RunFolder(out, trust)
        if not folder.config_file.is_file():
            raise ConfigError(f"{out} holds no run to resume: name the preset or file to run")
        return read(str(folder.config_file), settings, trust), folder
    source = "quickstart" if source is None else source
    return read(source, settings), RunFolder(out or Path("runs") / Path(source).stem, trust)


def warnings_for(config: Config, folder: RunFolder) -> list[str]:
    """Warnings about files that changed; a federation itself warns of doubtful settings."""
    return [f"{file} has changed since this run began: its next rounds differ" for file in changed(folder, config)]


def configured_data(config: DataConfig) -> Dataset:
    """The dataset of a configuration; DataError if its task is another than the configuration says."""
    if config.name.startswith(PREFIX):
        columns = {"inputs": config.inputs, "target": config.target, "task": config.task}
        return load_hugging_face(config.name, **columns)
    data = dataset(config.name)
    if config.task and config.task != data.task:
        raise DataError(
            f"data.task is {config.task}, but the task of {config.name} is {data.task}: correct one of them."
        )
    return data


def dataset(name: str) -> Dataset:
    """Load a dataset by its name, or by calling the user's own function."""
    if name in DATASETS or not name.rpartition(":")[0].endswith(".py") or name.startswith(PREFIX):
        return load(name)
    try:
        data = find({}, name, "data.name")()
    except FedVoteError:
        raise
    except Exception as error:
        raise DataError(
            f"{name} failed ({reason(error)}); expected a function without arguments that returns a dataset made by "
            "fedvote.from_arrays"
        ) from error
    if not isinstance(data, Dataset):
        raise DataError(f"{name} returned {contracts.kind(data)}, expected a dataset made by fedvote.from_arrays")
    return data


def with_validation(config: Config, data: Dataset) -> Dataset:
    """The dataset; if the configuration asks for validation, held-out training examples replace the test examples."""
    if not config.data.validation:
        return data
    return hold_out(data, config.data.validation, config.seed)


def division(config: Config) -> RenderableType:
    """A drawing of each client's classes."""
    data = with_validation(config, configured_data(config.data))
    rng = Key(config.seed).numpy("partition")
    return picture(data, divide(config.partition, data, config.federation.clients, rng))


def federation(
    config: Config, device: str = "auto", data: Dataset | None = None, owned: Sequence[Tensor] | None = None
) -> Federation:
    """Build the federation of a configuration. `data`, `owned`: the data and each client's part of it, if known."""
    if owned is not None and config.data.validation:
        raise ConfigError(
            f"data.validation is {config.data.validation}, but clients bring their own data, and the server cannot "
            "hold out any of it: leave it at 0, and give the server test examples"
        )
    data = with_validation(config, data or configured_data(config.data))
    module = make_model(config.model.name, data.shape, len(data.classes), config.seed)
    model = config.model
    with full_keys(keys_of(config)):
        return Federation.of(
            module, data, config.method, config,
            owned=owned, keep_float=model.keep_float, vote=model.vote, start=model.start,
            augment=config.data.augment, device=device,
        )  # fmt: skip


def record(
    federation: Federation,
    folder: RunFolder,
    since: Snapshot | None,
    snapshots: Iterable[Snapshot],
    share: float = 0.1,
    statistics: Callable[[], State | None] = lambda: None,
) -> Iterator[Snapshot]:
    """Write each snapshot to the folder, then yield it; write the deployed network after the last.

    `statistics`: gives those of the deployed network's batch norms, if there are no examples here to measure them on.

    Checkpoints take at most this share of the time: some methods keep gigabytes for their clients. So not every round
    may have one. A run that is cut off resumes from the last checkpoint.
    """
    if since is not None:
        check_snapshot(folder.checkpoint_file, since, federation)
    snapshot, saved, cost = since, -math.inf, 0.0
    for snapshot in snapshots:
        folder.add(snapshot)
        began = time.monotonic()
        if began - saved >= (1 / share - 1) * cost or snapshot.round == federation.plan.rounds:
            folder.save(snapshot)
            saved = time.monotonic()
            cost = saved - began
        yield snapshot
    measured = statistics()
    if snapshot is not None and (measured is not None or len(federation.data.train)):
        config = folder.config()
        save_network(folder.path, federation, snapshot, config.model if config else None, measured)
        if len(federation.data.test):
            write_evaluation(folder.path, federation, snapshot)
