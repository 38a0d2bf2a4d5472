"""Checkpoints: snapshots as safetensors files, replaced atomically, so a run killed at any point can resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.federation import Snapshot
from fedvote.system.tensor_file import save_tensors


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    tensors = {f"state/{name}": value for name, value in snapshot.state.items()}
    tensors |= {f"memory/{name}": value for name, value in snapshot.memory.items()}
    record = {"round": str(snapshot.round), "record": json.dumps(snapshot.record)}
    save_tensors(path, _unshared({name: value.contiguous().cpu() for name, value in tensors.items()}), record)


def _unshared(tensors: State) -> State:
    """Clone tensors that share memory: safetensors refuses them. They do if a round left the state unchanged."""
    owners: dict[int, str] = {}
    for name, value in tensors.items():
        if owners.setdefault(value.untyped_storage().data_ptr(), name) != name:
            tensors[name] = value.clone()
    return tensors


def load_snapshot(path: Path) -> Snapshot:
    with _opened(path) as file:
        round, record = int(file.metadata()["round"]), json.loads(file.metadata()["record"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    parts = {
        part: {n.removeprefix(part): t for n, t in tensors.items() if n.startswith(part)}
        for part in ("state/", "memory/")
    }
    return Snapshot(round, parts["state/"], parts["memory/"], record)


def saved_round(path: Path) -> int:
    """The round of a checkpoint, without reading its tensors."""
    with _opened(path) as file:
        return int(file.metadata()["round"])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} is damaged ({error}): delete it and start the run again") from error
