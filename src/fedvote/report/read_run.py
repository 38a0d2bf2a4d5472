"""Read a run folder: its configuration, its finished rounds, and its clients' data."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.network.summary import FROZEN
from fedvote.report.read_evaluation import read_evaluation
from fedvote.runs.description import JUDGED_BY
from fedvote.runs.folder import EVALUATION, RunFolder
from fedvote.runs.metrics_file import read_records
from fedvote.tasks.shown_metric import Shown

Record = Mapping[str, Any]
"""One line of metrics.jsonl."""


@dataclass(frozen=True)
class Clients:
    """Number of examples by client and class, and the hostile clients."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    hostile: frozenset[str]


@dataclass(frozen=True)
class Network:
    """The summary of the network when the run began: rows of layers, totals and warnings."""

    layers: tuple[tuple[str, ...], ...]  # name, shape, weights, role, bits up, bits on the device
    total: str
    warnings: tuple[str, ...]
    weights: int
    device_bytes: float
    sizes: frozenset[tuple[str, int]]  # name and weights of every layer
    sent: frozenset[tuple[str, int]]  # of the layers that travel: all but frozen ones


@dataclass(frozen=True)
class Run:
    name: str
    config: Mapping[str, Any]
    rounds: tuple[Record, ...]
    clients: Clients | None
    network: Network | None = None
    evaluation: Mapping[str, Any] = field(default_factory=dict)  # of the deployed network; empty: not evaluated yet
    explains: Mapping[str, str] = field(default_factory=dict)  # sentences about numbers of a method of the user's own

    def setting(self, *path: str) -> Any:
        """One value of the configuration, or None if there is no such key."""
        value: Any = self.config
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def column(self, key: str) -> list[float]:
        """The values of one metric; rounds without it are left out."""
        return [value for record in self.rounds if (value := number(record, key)) is not None]

    @property
    def shown(self) -> Shown:
        """The metric that the run is judged by."""
        return next((Shown.of(record) for record in reversed(self.rounds) if "metric" in record), Shown())

    def quality(self, suffix: str = "") -> list[float]:
        """The metric of every round that has it; `suffix`: of which model, such as _float."""
        return self.column(f"{self.shown.name}{suffix}")

    def final(self, suffix: str = "") -> float | None:
        """The metric of the last round that measured it; None if it was no finite number then, or never measured."""
        key = f"{self.shown.name}{suffix}"
        return next((number(record, key) for record in reversed(self.rounds) if key in record), None)

    @property
    def round_numbers(self) -> list[float]:
        """The numbers of the rounds."""
        return [float(record["round"]) for record in self.rounds]

    @property
    def megabytes(self) -> list[float]:
        """Megabytes of all clients together, up and down, by the end of each round."""
        return list(accumulate(both_ways(record) / 1e6 for record in self.rounds))

    @property
    def hostile(self) -> frozenset[str]:
        return self.clients.hostile if self.clients else frozenset()


def both_ways(record: Record) -> float:
    """Bytes of a round in both directions."""
    return (number(record, "uplink_bytes") or 0) + (number(record, "downlink_bytes") or 0)


def number(record: Record, key: str) -> float | None:
    """A metric of one round, or None if the round does not have it, or not as a finite number."""
    value = record.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def read_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """The runs in the order given, each folder once."""
    if not folders:
        raise ConfigError("No run folder was given, expected at least one: name the folder of a run.")
    distinct = list(dict.fromkeys(run.resolve() for folder in folders for run in runs_in(folder)))
    return tuple(read_run(folder, name) for folder, name in zip(distinct, short_names(distinct), strict=True))


def runs_in(folder: Path) -> list[Path]:
    """The run folders in a sweep's folder; for any other folder, the folder itself."""
    inside = sorted(file.parent for file in folder.glob("*/metrics.jsonl"))
    return inside if inside and not (folder / "metrics.jsonl").is_file() else [folder]


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are all different."""
    tails = (["/".join(folder.parts[-parts:]) for folder in folders] for parts in count(1))
    return next(names for names in tails if len(set(names)) == len(folders))


def read_run(folder: Path, name: str) -> Run:
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: give the folder that `fedvote run --out` wrote.")
    for file in ("config.toml", "metrics.jsonl"):
        if not (folder / file).is_file():
            raise ConfigError(
                f"{folder} has no {file}, expected a run folder with config.toml and metrics.jsonl: "
                "give the folder that `fedvote run --out` wrote."
            )
    config, metrics, clients = (folder / file for file in ("config.toml", "metrics.jsonl", "clients.json"))
    evaluation = read_evaluation(folder / EVALUATION)
    environment = RunFolder(folder).environment()
    configured, network = with_judge(read_config(config), environment), read_network(environment)
    explains = measured if isinstance(measured := environment.get("measured"), dict) else {}
    return Run(name, configured, read_rounds(metrics), read_clients(clients), network, evaluation, explains)


def with_judge(config: dict[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with the data that the run was judged by: a server and its clients may bring their own."""
    judge = environment.get(JUDGED_BY)
    if not isinstance(judge, dict) or not isinstance(judge.get("source"), str):
        return config
    data = config.get("data")
    return {**config, "data": {**(data if isinstance(data, dict) else {}), "name": judge["source"]}}


def read_config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML ({error}): restore it or run the experiment again.") from error


def read_rounds(path: Path) -> tuple[Record, ...]:
    """The finished rounds in order. If a resumed run repeated a round, the last line counts."""
    by_round = {record["round"]: record for record in read_records(path)}
    return tuple(by_round[index] for index in sorted(by_round))


def read_network(environment: Mapping[str, Any]) -> Network | None:
    """The network's summary; None if there is none, as of earlier versions, or if it cannot be read."""
    try:
        raw = environment["network"]
        layers = tuple(
            (
                str(layer["name"]),
                " x ".join(map(str, layer["shape"])),
                f"{layer['weights']:,}",
                str(layer["role"]),
                f"{layer['bits_up']:.3g}",
                f"{layer['bits_device']:.3g}",
            )
            for layer in raw["layers"]
        )
        weights = sum(int(layer["weights"]) for layer in raw["layers"])
        device_bytes = sum(layer["weights"] * layer["bits_device"] for layer in raw["layers"]) / 8
        sizes = {(str(layer["name"]), int(layer["weights"])): str(layer["role"]) for layer in raw["layers"]}
        sent = frozenset(size for size, role in sizes.items() if role != FROZEN)
        warnings = tuple(map(str, raw["warnings"]))
        return Network(layers, str(raw["total"]), warnings, weights, device_bytes, frozenset(sizes), sent)
    except (ValueError, KeyError, TypeError):
        return None


def read_clients(path: Path) -> Clients | None:
    if not path.is_file():
        return None
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        classes = tuple(str(name) for name in raw["classes"])
        counts = tuple(tuple(int(count) for count in row) for row in raw["counts"])
        hostile = frozenset(str(client) for client in raw.get("hostile", ()))
        if any(len(row) != len(classes) for row in counts):
            raise ValueError("a row of counts and the list of classes differ in length")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path} does not hold classes and a row of counts for each client ({error!r}): "
            "delete it to leave that section out, or run the experiment again."
        ) from error
    return Clients(classes, counts, hostile)
