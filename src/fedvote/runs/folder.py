"""The run folder: a run's configuration, its metrics, and the checkpoint to resume from."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fedvote.data.show import class_counts
from fedvote.data.strata import strata
from fedvote.errors import ConfigError
from fedvote.federation import Federation, Snapshot
from fedvote.methods import METHODS
from fedvote.network.summary import Summary
from fedvote.runs.checkpoint import load_snapshot, save_snapshot, saved_round
from fedvote.runs.config import Config, depends_on_rounds, read
from fedvote.runs.environment import environment as this_machine
from fedvote.runs.record_types import check_record
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import ENDING, write

NETWORK = "network.safetensors"
EVALUATION = "evaluation.json"
RUN_NAME = "run-name"  # the file with the random name of a run over a network
JUDGED_BY = "judged_by"  # in environment.json: source and digest of the data that the run was judged by
ELSEWHERE = "brought by clients and server"  # in environment.json: the configuration does not name the data
LOCK = ".lock"  # an empty file, locked while a run is in progress, and never deleted
NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_locked: dict[Path, FileLock] = {}  # folder -> lock, of the runs in this process


@dataclass(frozen=True)
class RunFolder:
    """config.toml, metrics.jsonl, clients.json, environment.json, checkpoint.safetensors.

    All are replaced atomically, but metrics.jsonl: it grows by a line a round, written before the round's checkpoint.
    """

    path: Path
    trust: bool = False  # whether its configuration may run FILE.py that this process has not run before

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
        """The configuration of the run in the folder, if there is one."""
        if not self.config_file.is_file():
            return None
        if not self.config_file.stat().st_size:
            raise ConfigError(f"{self.config_file} is empty, expected the configuration of the run: restore it")
        return read(str(self.config_file), trust=self.trust)

    def begun(self) -> bool:
        """Whether a round is finished. A run that failed before its first round may restart with other settings."""
        return self.checkpoint_file.exists() or bool(self.metrics())

    def changed(self, config: Config) -> list[str]:
        """The user's Python files that have changed since the run in the folder began."""
        before = self.environment().get("files", {}) if self.begun() else {}
        before = before if isinstance(before, dict) else {}
        return [file for file, now in own_files(config).items() if before.get(file, now) != now]

    def check(self, config: Config) -> None:
        """Refuse a configuration other than the one of the run in the folder, if there is a run."""
        saved = self.config() if self.begun() else None
        # the same run may have more rounds, unless a schedule ends with the last, and other timeouts
        if saved is not None:
            rounds = saved.rounds if depends_on_rounds(config) else config.rounds
            saved = dataclasses.replace(saved, rounds=rounds, flower=config.flower)
        if saved is not None and saved != config:
            if saved == dataclasses.replace(config, rounds=saved.rounds):
                raise ConfigError(
                    f"{self.path} holds a run of {saved.rounds} rounds whose schedule ends with the last of them, so "
                    f"it cannot go on to {config.rounds}: start a run of {config.rounds} in another folder with --out"
                )
            raise ConfigError(
                f"{self.path} holds another run: it differs in {', '.join(differences(saved, config))}; "
                f"{self._how_to_resume()}, or choose another folder with --out"
            )

    def check_data(self, federation: Federation) -> None:
        """Refuse to resume a run whose clients brought their own data on the data that the configuration names."""
        if self.begun() and self.environment().get("data") == ELSEWHERE and not federation.data_elsewhere:
            raise ConfigError(
                f"{self.path} holds a run on data that its clients and its server brought, not on the data that its "
                f"configuration names: {self._how_to_resume()}, or choose another folder with --out"
            )

    def _how_to_resume(self) -> str:
        if (self.path / RUN_NAME).is_file():
            return "resume it over the network, by `flwr run` or `fedvote deploy local` as it was started"
        return f"resume it as it is with `fedvote run --resume --out {self.path}`"

    def environment(self) -> dict[str, Any]:
        """The content of environment.json; empty if there is none."""
        if not self.environment_file.is_file():
            return {}
        return read_table(self.environment_file)

    def claim(self, config: Config, resume: bool) -> Snapshot | None:
        """Lock the folder for this run; returns its checkpoint, if any. Nothing is overwritten but by `resume`."""
        self._check_claim(config, resume)
        self._lock()
        try:
            self._check_claim(config, resume)  # again: another run may have ended since
            return self._take(config)
        except BaseException:
            self.release()
            raise

    def _check_claim(self, config: Config, resume: bool) -> None:
        saved = self.config()
        if saved is None and self.path.is_dir() and any(map(_is_foreign, self.path.iterdir())):
            raise ConfigError(f"{self.path} is not empty and holds no run: choose another folder with --out")
        if saved is not None and self.begun() and not resume:
            raise ConfigError(
                f"{self.path} already holds a run ({len(self.metrics())} of {saved.rounds} rounds): "
                "resume it with --resume, or choose another folder with --out"
            )
        self.check(config)

    def _take(self, config: Config) -> Snapshot | None:
        snapshot = load_snapshot(self.checkpoint_file) if self.checkpoint_file.is_file() else None
        done = snapshot.round if snapshot else 0
        if done > config.rounds:
            raise ConfigError(
                f"{self.path} has {done} rounds already, asked for {config.rounds}: ask for {done} or more"
            )
        # the last line may have been cut off; the checkpoint holds it, too
        kept = [record for record in self.metrics() if record["round"] < done] + ([snapshot.record] if snapshot else [])
        if [record["round"] for record in kept] != list(range(1, done + 1)):
            raise ConfigError(
                f"{self.metrics_file} lacks some of the {done} rounds before {self.checkpoint_file.name}: "
                "restore it, or start the run again in another folder"
            )
        try:
            write(self.config_file, to_toml(as_table(config)))
        except OSError as error:
            raise self._unwritable(error) from error
        if done < config.rounds:
            for name in (NETWORK, EVALUATION):  # they are of an earlier round
                (self.path / name).unlink(missing_ok=True)
        write(self.metrics_file, "".join(map(_line, kept)))
        return snapshot

    def release(self) -> None:
        """Unlock the folder."""
        if (lock := _locked.pop(self.path.resolve(), None)) is not None:
            lock.release()

    def _lock(self) -> None:
        """Make the folder, and keep other runs out of it, in this process and in others."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        where = self.path.resolve()
        busy = ConfigError(
            f"{self.path} is the folder of a run in progress: wait for its end, stop it, or choose another folder "
            "with --out"
        )
        if where in _locked:
            raise busy
        # no soft lock: it would outlive a killed process. Not thread-local: any thread may release it.
        lock = FileLock(where / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise busy from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise ConfigError(
                    f"{where / LOCK} cannot be opened ({error.strerror}), so another run might use the folder: make it "
                    "writable, or choose another folder with --out"
                ) from error
            # the file system has no locks: users must take care themselves
        _locked[where] = lock

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self.path} cannot be written ({error}): choose another folder with --out")

    def describe(
        self, federation: Federation, judged_by: Mapping[str, Any] | None = None, summary: Summary | None = None
    ) -> None:
        """Write environment.json, and clients.json if the clients' data are on this machine.

        `judged_by`: the data by which the run is judged (judged_by.py).
        """
        about: dict[str, Any] = this_machine(federation.device)
        about["network"] = (summary or federation.summary()).as_json()
        if (config := self.config()) and (files := own_files(config)):
            about["files"] = files
        if (method := type(federation.method)) not in METHODS.values() and method.explains:
            about["measured"] = dict(method.explains)
        if federation.data_elsewhere:
            about["data"] = ELSEWHERE
        if judged_by is not None:
            about[JUDGED_BY] = judged_by
        write(self.environment_file, json.dumps(about, indent=2) + "\n")
        if federation.data_elsewhere:
            return
        counts = class_counts(federation.data, [part.numpy() for part in federation.owned])
        clients = {
            "classes": list(strata(federation.data)[1]),
            "counts": counts.tolist(),
            "hostile": list(federation.hostile),
        }
        write(self.path / "clients.json", json.dumps(clients))

    def add(self, snapshot: Snapshot) -> None:
        """Append a round's line to metrics.jsonl. On resume, lines after the checkpoint's round are dropped."""
        with self.metrics_file.open("a") as file:
            file.write(_line(snapshot.record))
            file.flush()
            os.fsync(file.fileno())

    def save(self, snapshot: Snapshot) -> None:
        """Write the checkpoint."""
        save_snapshot(self.checkpoint_file, snapshot)

    def rounds_done(self) -> int:
        return saved_round(self.checkpoint_file) if self.checkpoint_file.is_file() else 0

    def metrics(self) -> list[dict[str, Any]]:
        """The records so far, without a last line that was cut off."""
        return list(read_records(self.metrics_file)) if self.metrics_file.exists() else []


def _is_foreign(file: Path) -> bool:
    """Whether a file is not ours. A run killed at its start leaves only temporary files and its lock."""
    return file.suffix != ENDING and file.name != LOCK


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a metrics.jsonl, each with its round."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    for index, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            check_record(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if index == len(lines):
                return  # the run was killed while it wrote this line
            raise ConfigError(
                f"Line {index} of {path} is not a JSON object with a round in it ({error!r}): "
                "restore it, or run the experiment again."
            ) from error
        yield record


def read_table(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a run folder."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"it holds a {type(content).__name__}")
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is damaged ({error}), expected a JSON object: restore it or delete it") from error
    return content


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(_without_nan(record), allow_nan=False) + "\n"


def _without_nan(value: Any) -> Any:
    """NaN and infinities become None: JSON has neither."""
    if isinstance(value, Mapping):
        return {name: _without_nan(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def differences(a: Config, b: Config) -> list[str]:
    left, right = flat(as_table(a)), flat(as_table(b))
    return [
        f"{k} ({left.get(k)!r} there, {right.get(k)!r} asked)" for k in {**left, **right} if left.get(k) != right.get(k)
    ]


def own_files(config: Config) -> dict[str, str]:
    """File -> digest, of the user's Python files that a configuration names."""
    names = [value.rpartition(":")[0] for value in flat(as_table(config)).values() if isinstance(value, str)]
    files = [Path(name) for name in names if name.endswith(".py") and Path(name).is_file()]
    return {str(file): digest(file) for file in files}


def digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def flat(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Every key of a configuration, as a.b, with its value."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        inner = dict(enumerate(value)) if isinstance(value, list) and any(isinstance(e, dict) for e in value) else value
        found |= flat(inner, f"{path}{key}.") if isinstance(inner, dict) else {f"{path}{key}": value}
    return found
