"""The problem: the description of a federation, the same for all clients and rounds. It is sent to each client once.

A client keeps the record in Flower's state. Later tasks have only its digest. A client that does not hold the record
with this digest, because it is new or has lost it, says so and is sent the whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b, sha256

from flwr.app import ConfigRecord, RecordDict

import fedvote
from fedvote import core
from fedvote.errors import ConfigError, NoProblemError

PROBLEM = "problem"  # the record's name, in a task's message and in a client's state
DIGEST = "digest"  # the one field of a record that stands for the whole
DIGEST_BYTES = 16


@dataclass(frozen=True)
class Problem:
    """The description of the federation, the same for all clients and rounds."""

    experiment: str  # the complete configuration, as TOML
    shape: tuple[int, ...]  # of one input
    classes: int
    mean: tuple[float, ...] = ()  # of each channel; inputs are scaled by mean and std
    std: tuple[float, ...] = ()
    run: str = ""  # the run's random name, which no other run has
    dtype: str = "uint8"  # of inputs before they are scaled: uint8 or float32
    own_data: bool = False  # whether the server tests on its own data; clients must then train on theirs
    files: tuple[tuple[str, str], ...] = ()  # the user's Python files in the configuration, with their digests
    task: core.Task = "classification"
    names: tuple[str, ...] = ()  # of the classes; empty: 0, 1, ...

    @property
    def hash(self) -> bytes:
        """Of a secure tally's sessions: clients that were told different things have no session in common."""
        return sha256(_text(problem_record(self))).digest()


def problem_record(problem: Problem, whole: bool = True) -> ConfigRecord:
    """A problem as a record: the whole, or its digest."""
    record = ConfigRecord(
        {
            "experiment": problem.experiment,
            "shape": list(problem.shape),
            "classes": problem.classes,
            "mean": list(problem.mean),
            "std": list(problem.std),
            "run": problem.run,
            "dtype": problem.dtype,
            "own_data": problem.own_data,
            "files": [file for file, _ in problem.files],
            "digests": [digest for _, digest in problem.files],
            "version": fedvote.__version__,
            **({"task": problem.task} if problem.task != "classification" else {}),
            **({"names": list(problem.names)} if problem.names else {}),
        }
    )
    return record if whole else ConfigRecord({DIGEST: digest_of(record)})


def digest_of(record: ConfigRecord) -> str:
    """BLAKE2b of the record's fields as JSON, sorted by name, in hexadecimal."""
    return blake2b(_text(record), digest_size=DIGEST_BYTES).hexdigest()


def _text(record: ConfigRecord) -> bytes:
    return json.dumps(dict(record), sort_keys=True).encode()


def receive_problem(content: RecordDict, state: RecordDict) -> Problem:
    """The problem of a task. A whole one is kept in the state; for a digest, NoProblemError unless the state has it."""
    sent = content.config_records[PROBLEM]
    if list(sent) != [DIGEST]:
        state[PROBLEM] = sent
        return _read(sent)
    held = state.config_records.get(PROBLEM)
    if held is None or digest_of(held) != sent[DIGEST]:
        raise NoProblemError("a task with the digest of a configuration that this client does not have")
    return _read(held)


def _read(record: ConfigRecord) -> Problem:
    """The problem in a record; ConfigError if the server runs another version of fedvote."""
    if (servers := str(record.get("version", "of an earlier version"))) != (own := fedvote.__version__):
        raise ConfigError(f"the server runs fedvote {servers}, this client {own}: install one version on all machines")
    return Problem(
        str(record["experiment"]),
        tuple(record["shape"]),  # type: ignore[arg-type]
        int(record["classes"]),  # type: ignore[arg-type]
        tuple(record["mean"]),  # type: ignore[arg-type]
        tuple(record["std"]),  # type: ignore[arg-type]
        str(record["run"]),
        str(record["dtype"]),
        bool(record["own_data"]),
        tuple(zip(record["files"], record["digests"], strict=True)),  # type: ignore[arg-type, misc]
        str(record.get("task", "classification")),  # type: ignore[arg-type]
        tuple(record.get("names", ())),  # type: ignore[arg-type]
    )
