"""Checkpoints: snapshots as safetensors files, replaced atomically, so a run killed at any point can resume."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from fedvote.core import State
from fedvote.errors import ConfigError, WireError
from fedvote.federation import Federation
from fedvote.rounds import HELD, Round, held
from fedvote.rounds.snapshot import Snapshot
from fedvote.system.device import repeatable
from fedvote.system.tensor_file import save_tensors
from fedvote.wire import frames


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
        if not isinstance(record, dict) or record.get("round") != round:
            raise ValueError(f"its record is not of round {round}")
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


def check_snapshot(path: Path, snapshot: Snapshot, federation: Federation) -> None:
    """Refuse a checkpoint that this federation's rounds cannot have made: other tensors, NaN, or invalid votes."""
    method, network, clients = federation.method, federation.network.to(federation.device), len(federation.owned)
    round, state = Round(method, network, federation.key(snapshot.round + 1)), snapshot.to(federation.device).state
    try:
        with repeatable():
            expected = federation.start_state()
            if any(name.startswith(HELD) for name in state):
                expected = expected | {HELD + name: value for name, value in method.broadcast(expected).items()}
            _check_tensors(held.without_earlier(state) if federation.keeps_earlier else state, _types(expected))
            for earlier in held.checked(state, snapshot.round) if federation.keeps_earlier else ():
                _check_tensors(earlier, _types(held.last(state)))
                round.wire.unmoved(earlier)
            if snapshot.memory:  # over a network, clients keep it
                one = method.memory(network)
                _check_tensors(snapshot.memory, {name: (v.dtype, (clients, *v.shape)) for name, v in one.items()})
            method.models(state)
            (frame,) = frames(round.broadcast(state))
            round.read_broadcast(frame)
            if reference := round.reference(state):
                round.wire.unmoved(reference)
    except (ValueError, WireError) as error:
        raise ConfigError(
            f"{path} is not of this run, is of another version of fedvote, or is damaged ({error}): "
            "restore it from a copy, resume the run with that version, or start the run again in another folder"
        ) from error


def _types(tensors: State) -> dict[str, tuple[torch.dtype, Sequence[int]]]:
    return {name: (value.dtype, value.shape) for name, value in tensors.items()}


def _check_tensors(found: State, expected: Mapping[str, tuple[torch.dtype, Sequence[int]]]) -> None:
    differ = {"lacks": expected.keys() - found.keys(), "has also": found.keys() - expected.keys()}
    if said := [f"{how} {', '.join(sorted(names))}" for how, names in differ.items() if names]:
        raise ValueError(f"it {' and '.join(said)}")
    for name, (dtype, shape) in expected.items():
        value = found[name]
        if (value.dtype, tuple(value.shape)) != (dtype, tuple(shape)):
            raise ValueError(
                f"{name} is {value.dtype} of shape {tuple(value.shape)}, expected {dtype} of {tuple(shape)}"
            )
        if not bool(value.isfinite().all()):
            raise ValueError(f"{name} has values that are not finite")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path} is damaged or cannot be read ({error}): restore it from a copy; if there is none, start the run "
            "again in another folder"
        ) from error
