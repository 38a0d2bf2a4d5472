"""A task: the server's message to one client in one round."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import astuple, dataclass, field

from flwr.app import ConfigRecord, Message, MessageType, RecordDict

import fedvote
from fedvote import core
from fedvote.engines.flower.frame_record import frame_record, read_frame
from fedvote.errors import ConfigError

PROBLEM, TASK, BROADCAST = "problem", "task", "broadcast"  # the records of a task's message
OPENING = "opening"  # and one more under a secure tally


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
        """SHA-256 of all of it: a server that tells clients different things gives them different hashes."""
        return hashlib.sha256(json.dumps(astuple(self)).encode()).digest()


@dataclass(frozen=True)
class Task:
    """One turn of training, asked of one client."""

    problem: Problem
    round: int
    client: int
    broadcast: bytes
    secret: bytes = field(default=b"", repr=False)  # of this client, for the whole run: it rounds by it
    opening: bytes = b""  # of a secure tally; empty: the server sees ballots


def task_message(task: Task, node: int, ttl: float, kind: str = MessageType.TRAIN) -> Message:
    """A task as a message to a node, with a time to live in seconds.

    The nonce makes the message's id unguessable: no other node can answer it.
    """
    problem = task.problem
    about = ConfigRecord(
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
    turn = ConfigRecord({"round": task.round, "client": task.client, "secret": task.secret, "nonce": os.urandom(16)})
    content = RecordDict({PROBLEM: about, TASK: turn, BROADCAST: frame_record(task.broadcast)})
    if task.opening:
        content[OPENING] = frame_record(task.opening)
    return Message(content, node, kind, ttl=ttl, group_id=str(task.round))


def read_task(message: Message) -> Task:
    """The task in a message; ConfigError if the server runs another version of fedvote."""
    about, turn = message.content.config_records[PROBLEM], message.content.config_records[TASK]
    if (servers := str(about.get("version", "of an earlier version"))) != (own := fedvote.__version__):
        raise ConfigError(f"the server runs fedvote {servers}, this client {own}: install one version on all machines")
    problem = Problem(
        str(about["experiment"]),
        tuple(about["shape"]),  # type: ignore[arg-type]
        int(about["classes"]),  # type: ignore[arg-type]
        tuple(about["mean"]),  # type: ignore[arg-type]
        tuple(about["std"]),  # type: ignore[arg-type]
        str(about["run"]),
        str(about["dtype"]),
        bool(about["own_data"]),
        tuple(zip(about["files"], about["digests"], strict=True)),  # type: ignore[arg-type, misc]
        str(about.get("task", "classification")),  # type: ignore[arg-type]
        tuple(about.get("names", ())),  # type: ignore[arg-type]
    )
    round, client = int(turn["round"]), int(turn["client"])  # type: ignore[arg-type]
    secret = bytes(turn["secret"])  # type: ignore[arg-type]
    opening = read_frame(message.content, OPENING) if OPENING in message.content else b""
    return Task(problem, round, client, read_frame(message.content, BROADCAST), secret, opening)
