"""The folder that a run leaves behind: what was asked, what was measured, and where to go on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from fedvote.data.show import class_counts
from fedvote.errors import ConfigError
from fedvote.federation import Federation, Snapshot
from fedvote.registry import absolute_name
from fedvote.runs.checkpoint import load_snapshot, save_snapshot, saved_round
from fedvote.runs.config import Config, read
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import ENDING, write

NETWORK = "network.safetensors"
RUN_NAME = "run-name"  # of a run over a network: the file that tells it from all others
ELSEWHERE = "brought by clients and server"  # as environment.json has it, of data that no configuration names
LOCK = ".lock"  # an empty file, which is locked as long as a run goes on, and stays
_locked: dict[Path, FileLock] = {}  # folders of runs in this process, and what holds others off


@dataclass(frozen=True)
class RunFolder:
    """config.toml, metrics.jsonl, clients.json, environment.json, checkpoint.safetensors.

    All are written in one step, but for the lines of metrics.jsonl, each of which is on disk before its checkpoint is.
    """

    path: Path

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def environment_file(self) -> Path:
        return self.path / "environment.json"

    @property
    def checkpoint_file(self) -> Path:
        return self.path / "checkpoint.safetensors"

    def config(self) -> Config | None:
        """The configuration of the run that is in the folder, if there is one."""
        if not self.config_file.is_file():
            return None
        if not self.config_file.stat().st_size:
            raise ConfigError(f"{self.config_file} is empty, so that nobody knows what was run: restore it")
        return read(str(self.config_file))

    def model(self) -> str | None:
        """The network that the configuration names, without looking at, or running, anything else that it names."""
        try:
            name = tomllib.loads(self.config_file.read_text(encoding="utf-8"))["model"]["name"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return absolute_name(str(name))

    def begun(self) -> bool:
        """Whether there is a finished round: what failed before that can be started again, and otherwise."""
        return self.checkpoint_file.exists() or bool(self.metrics())

    def changed(self, config: Config) -> list[str]:
        """The user's own files that are not what they were in the run in the folder, if there is one."""
        before = self._about().get("files", {}) if self.begun() else {}
        return [file for file, now in own_files(config).items() if before.get(file, now) != now]

    def check(self, config: Config) -> None:
        """Refuse a configuration that is not that of the run in the folder, if there is one."""
        there = self.config() if self.begun() else None
        # more rounds, and how long a server waits for clients, do not make it another run
        if there is not None:
            there = dataclasses.replace(there, rounds=config.rounds, flower=config.flower)
        if there is not None and there != config:
            raise ConfigError(
                f"{self.path} holds another run: it differs in {', '.join(differences(there, config))}; "
                f"{self._how_to_go_on()}, or choose another folder with --out"
            )

    def check_data(self, federation: Federation) -> None:
        """Refuse to go on, with the data that the configuration names, with a run whose clients brought their own."""
        if self.begun() and self._about().get("data") == ELSEWHERE and not federation.data_elsewhere:
            raise ConfigError(
                f"{self.path} holds a run on data that its clients and its server brought, not on those that its "
                f"configuration names: {self._how_to_go_on()}, or choose another folder with --out"
            )

    def _how_to_go_on(self) -> str:
        if (self.path / RUN_NAME).is_file():
            return "go on with it over the network, by `flwr run` or `fedvote deploy local` as it was started"
        return f"resume it as it is with `fedvote run --resume --out {self.path}`"

    def _about(self) -> dict[str, Any]:
        """What environment.json says, if it is there."""
        if not self.environment_file.is_file():
            return {}
        about: dict[str, Any] = json.loads(self.environment_file.read_text(encoding="utf-8"))
        return about

    def claim(self, config: Config, resume: bool) -> Snapshot | None:
        """Make the folder this run's, until it is released; nothing is overwritten, unless the same run is resumed."""
        there = self.config()
        if there is None and self.path.is_dir() and any(map(_is_foreign, self.path.iterdir())):
            raise ConfigError(f"{self.path} is not empty and holds no run: choose another folder with --out")
        if there is not None and self.begun() and not resume:
            raise ConfigError(
                f"{self.path} already holds a run ({len(self.metrics())} of {there.rounds} rounds): "
                "go on with it by --resume, or choose another folder with --out"
            )
        self.check(config)
        self._lock()
        try:
            return self._take(config)
        except BaseException:
            self.release()
            raise

    def _take(self, config: Config) -> Snapshot | None:
        snapshot = load_snapshot(self.checkpoint_file) if self.checkpoint_file.is_file() else None
        done = snapshot.round if snapshot else 0
        if done > config.rounds:
            raise ConfigError(
                f"{self.path} has {done} rounds already, asked for {config.rounds}: ask for {done} or more"
            )
        # the last line may have been cut off, but the checkpoint has it, too
        kept = [record for record in self.metrics() if record["round"] < done] + ([snapshot.record] if snapshot else [])
        if [record["round"] for record in kept] != list(range(1, done + 1)):
            raise ConfigError(
                f"{self.metrics_file} has not all of the {done} rounds that {self.checkpoint_file.name} follows: "
                "restore it, or start the run again in another folder"
            )
        try:
            write(self.config_file, to_toml(as_table(config)))
        except OSError as error:
            raise self._unwritable(error) from error
        if done < config.rounds:
            (self.path / NETWORK).unlink(missing_ok=True)  # of fewer rounds
        write(self.metrics_file, "".join(map(_line, kept)))
        return snapshot

    def release(self) -> None:
        """Let others go on with the run."""
        if (lock := _locked.pop(self.path.resolve(), None)) is not None:
            lock.release()

    def _lock(self) -> None:
        """Make the folder, and see to it that nobody else works on the run, in this process or another."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        where = self.path.resolve()
        busy = ConfigError(
            f"{self.path} is the folder of a run that is going on: wait for its end, stop it, or choose another "
            "folder with --out"
        )
        if where in _locked:
            raise busy
        # a soft lock would outlive a process that is killed; any thread may release it
        lock = FileLock(where / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise busy from None
        except OSError:
            pass  # a file system without locks: then people have to take care
        _locked[where] = lock

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self.path} cannot be written ({error}): choose another folder with --out")

    def describe(self, federation: Federation) -> None:
        """Who has what data, where that is known here, and what the run was made with."""
        about: dict[str, Any] = environment(federation.device)
        if (config := self.config()) and (files := own_files(config)):
            about["files"] = files
        if federation.data_elsewhere:
            about["data"] = ELSEWHERE
        write(self.environment_file, json.dumps(about, indent=2) + "\n")
        if federation.data_elsewhere:
            return
        counts = class_counts(federation.data, [part.numpy() for part in federation.owned])
        clients = {
            "classes": list(federation.data.classes),
            "counts": counts.tolist(),
            "hostile": list(federation.hostile),
        }
        write(self.path / "clients.json", json.dumps(clients))

    def add(self, snapshot: Snapshot) -> None:
        """The line of one more round. Lines without a checkpoint are dropped when the run is resumed."""
        with self.metrics_file.open("a") as file:
            file.write(_line(snapshot.record))
            file.flush()
            os.fsync(file.fileno())

    def save(self, snapshot: Snapshot) -> None:
        """Where to go on from."""
        save_snapshot(self.checkpoint_file, snapshot)

    def rounds_done(self) -> int:
        return saved_round(self.checkpoint_file) if self.checkpoint_file.is_file() else 0

    def metrics(self) -> list[dict[str, Any]]:
        """The records so far; a last line that was cut off is left out."""
        return list(read_records(self.metrics_file)) if self.metrics_file.exists() else []


def _is_foreign(file: Path) -> bool:
    """Whether no run has left it: one that was killed as it began leaves nothing but drafts and its lock."""
    return file.suffix != ENDING and file.name != LOCK


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics.jsonl, each an object with a round."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    for index, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not isinstance(record["round"], int):
                raise TypeError("its round is not a whole number")
        except (ValueError, KeyError, TypeError) as error:
            if index == len(lines):
                return  # a run that was killed while it wrote this line
            raise ConfigError(
                f"Line {index} of {path} is not a JSON object with a round in it ({error!r}): "
                "restore it, or run the experiment again."
            ) from error
        yield record


def uncounted(record: Mapping[str, Any]) -> bool:
    """Whether nobody's message counted in a round."""
    return bool(record.get("refused")) and len(record["refused"]) == len(record["clients"])


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(_without_nan(record), allow_nan=False) + "\n"


def _without_nan(value: Any) -> Any:
    """What is not a number is nothing, in JSON."""
    if isinstance(value, Mapping):
        return {name: _without_nan(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def differences(a: Config, b: Config) -> list[str]:
    left, right = _flat(as_table(a)), _flat(as_table(b))
    return [
        f"{k} ({left.get(k)!r} there, {right.get(k)!r} asked)" for k in {**left, **right} if left.get(k) != right.get(k)
    ]


def own_files(config: Config) -> dict[str, str]:
    """A digest of every Python file of the user's own that a configuration names."""
    names = [value.rpartition(":")[0] for value in _flat(as_table(config)).values() if isinstance(value, str)]
    files = [Path(name) for name in names if name.endswith(".py") and Path(name).is_file()]
    return {str(file): digest(file) for file in files}


def digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def environment(device: torch.device) -> dict[str, str]:
    from fedvote import __version__

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "fedvote": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": f"{device.type}: {name}",
        "threads": str(torch.get_num_threads()),  # on which the order of sums depends, and so the last bit
    }


def _flat(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": value}
    return flat
