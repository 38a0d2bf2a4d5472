"""Read a run folder: its configuration, its finished rounds, and its clients' data."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.runs.folder import EVALUATION, read_records
from fedvote.tasks.goal import Shown

Record = Mapping[str, Any]
"""One line of metrics.jsonl."""


@dataclass(frozen=True)
class Clients:
    """Number of examples by client and class, and the hostile clients."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    hostile: frozenset[str]


@dataclass(frozen=True)
class Run:
    name: str
    config: Mapping[str, Any]
    rounds: tuple[Record, ...]
    clients: Clients | None
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

    @property
    def uplink_megabytes(self) -> list[float]:
        """Megabytes that all clients together have sent by the end of each round."""
        return list(accumulate((number(record, "uplink_bytes") or 0) / 1e6 for record in self.rounds))

    @property
    def hostile(self) -> frozenset[str]:
        return self.clients.hostile if self.clients else frozenset()


def number(record: Record, key: str) -> float | None:
    """A metric of one round, or None if the round does not have it."""
    value = record.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


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
    for file in ("config.toml", "metrics.jsonl"):
        if not (folder / file).is_file():
            raise ConfigError(
                f"{folder} has no {file}, expected a run folder with config.toml and metrics.jsonl: "
                "give the folder that `fedvote run --out` wrote."
            )
    config, metrics, clients = (folder / file for file in ("config.toml", "metrics.jsonl", "clients.json"))
    evaluation, environment = read_json(folder / EVALUATION), read_json(folder / "environment.json")
    explains = environment.get("measured") or {}
    return Run(name, read_config(config), read_rounds(metrics), read_clients(clients), evaluation, explains)


def read_json(path: Path) -> Mapping[str, Any]:
    """The content of a file that may not be there; empty if it is not."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON ({error}): delete it to leave its part out.") from error
    return content


def read_config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML ({error}): restore it or run the experiment again.") from error


def read_rounds(path: Path) -> tuple[Record, ...]:
    """The finished rounds in order. If a resumed run repeated a round, the last line counts."""
    by_round = {record["round"]: record for record in read_records(path)}
    return tuple(by_round[index] for index in sorted(by_round))


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
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} does not hold classes and a row of counts for each client ({error!r}): "
            "delete it to leave that section out, or run the experiment again."
        ) from error
    return Clients(classes, counts, hostile)
