"""The run folder: a run's configuration, its metrics, and the checkpoint to resume from."""

from __future__ import annotations

import shlex
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import save_snapshot, saved_round
from fedvote.runs.config import Config, read
from fedvote.runs.json_table import read_table
from fedvote.runs.metrics_file import append_record, read_records
from fedvote.system.own_code import files_in

NETWORK = "network.safetensors"
EVALUATION = "evaluation.json"
RUN_NAME = "run-name"  # the file with the random name of a run over a network


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

    def environment(self) -> dict[str, Any]:
        """The content of environment.json; empty if there is none."""
        return read_table(self.environment_file) if self.environment_file.is_file() else {}

    def add(self, snapshot: Snapshot) -> None:
        """Append a round's line to metrics.jsonl. On resume, lines after the checkpoint's round are dropped."""
        append_record(self.metrics_file, snapshot.record)

    def save(self, snapshot: Snapshot) -> None:
        """Write the checkpoint."""
        save_snapshot(self.checkpoint_file, snapshot)

    def rounds_done(self) -> int:
        return saved_round(self.checkpoint_file) if self.checkpoint_file.is_file() else 0

    def metrics(self) -> list[dict[str, Any]]:
        """The records so far, without a last line that was cut off."""
        return list(read_records(self.metrics_file)) if self.metrics_file.exists() else []

    def metrics_before_resume(self) -> list[dict[str, Any]]:
        """The records of the rounds that a resumed run does not repeat: those up to the checkpoint."""
        return self.metrics()[: self.rounds_done()]

    def how_to_resume(self) -> str:
        """What to tell a user who has to go on with the run in another way."""
        if (self.path / RUN_NAME).is_file():
            return "resume it over the network, by `flwr run` or `fedvote deploy local` as it was started"
        return f"resume it as it is with `{self.resume_command()}`"

    def how_to_get_network(self) -> str:
        """What to tell a user who wants the network of a run that has not ended."""
        done = self.rounds_done()
        if not done or (self.path / RUN_NAME).is_file():
            return self.how_to_resume()
        now = self.resume_command(f"rounds={done}")
        return f"{self.how_to_resume()}, or write the network of its {done} rounds with `{now}`"

    def resume_command(self, *settings: str) -> str:
        """The command that goes on with the run, with --trust if its configuration names FILE.py of the user's own."""
        table: dict[str, Any] = {}
        with suppress(OSError, ValueError):  # a damaged file: the command itself says what is wrong
            table = tomllib.loads(self.config_file.read_text(encoding="utf-8"))
        trust = ["--trust"] if files_in(table) else []
        more = [*trust, *(f"--set {setting}" for setting in settings)]
        return " ".join(["fedvote run --resume --out", shlex.quote(str(self.path)), *more])
