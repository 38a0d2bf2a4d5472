"""What travels over Flower: the broadcast and a task to a client, and one frame back. Nothing else leaves a client."""

from __future__ import annotations

import os
from dataclasses import dataclass

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

import fedvote
from fedvote.errors import ConfigError, WireError

BROADCAST, TASK, BALLOT, FRAME = "broadcast", "task", "ballot", "frame"
CHUNKED = 2**22  # bytes above which a frame travels in chunks, as an array, which Flower moves faster


@dataclass(frozen=True)
class Problem:
    """What all clients work on: the same for everybody, in every round."""

    experiment: str  # the complete configuration, as TOML
    shape: tuple[int, ...]  # of one input
    classes: int
    mean: tuple[float, ...] = ()  # how inputs are scaled
    std: tuple[float, ...] = ()
    run: str = ""  # what no two runs share
    dtype: str = "uint8"  # of inputs before they are scaled; else float32
    own_data: bool = False  # whether the server tests on data of its own, and so clients train on theirs
    files: tuple[tuple[str, str], ...] = ()  # the user's own that the configuration names, with their digests


@dataclass(frozen=True)
class Task:
    """What one client is asked to do."""

    problem: Problem
    round: int
    client: int
    broadcast: bytes


def ask(task: Task, node: int, ttl: float) -> Message:
    """A task as a message. The random bytes make its id one that nobody else can guess, and so answer."""
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
        }
    )
    yours = ConfigRecord({"round": task.round, "client": task.client, "nonce": os.urandom(16)})
    content = RecordDict({"problem": about, TASK: yours, BROADCAST: _wrap(task.broadcast)})
    return Message(content, node, MessageType.TRAIN, ttl=ttl, group_id=str(task.round))


def read_task(message: Message) -> Task:
    """The task in a message; ConfigError if the server's version of fedvote may mean another by it."""
    about, yours = message.content.config_records["problem"], message.content.config_records[TASK]
    if (theirs := str(about.get("version", "of an earlier version"))) != (ours := fedvote.__version__):
        raise ConfigError(f"the server runs fedvote {theirs}, this client {ours}: install one version on all machines")
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
    )
    round, client = int(yours["round"]), int(yours["client"])  # type: ignore[arg-type]
    return Task(problem, round, client, _unwrap(message.content, BROADCAST))


def answer(frame: bytes, message: Message) -> Message:
    """A client's frame, in reply to the message that asked for it."""
    return Message(RecordDict({BALLOT: _wrap(frame)}), reply_to=message)


def read_answer(message: Message) -> bytes:
    """The frame in a client's reply; WireError if it holds anything else."""
    if list(message.content) != [BALLOT]:
        raise WireError(f"a reply that holds {sorted(message.content)}, expected one {BALLOT}")
    return _unwrap(message.content, BALLOT)


def size(message: Message) -> int:
    """The bytes of Flower's objects that carry a message: its records, their names and its metadata."""
    return sum(len(part.deflate()) for part in get_all_nested_objects(message).values())


def _wrap(frame: bytes) -> ConfigRecord | ArrayRecord:
    if len(frame) <= CHUNKED:
        return ConfigRecord({FRAME: frame})
    return ArrayRecord({FRAME: Array("uint8", (len(frame),), "bytes", frame)})


def _unwrap(content: RecordDict, name: str) -> bytes:
    record = content[name]
    if not isinstance(record, ConfigRecord | ArrayRecord) or list(record) != [FRAME]:
        raise WireError(f"a {name} that holds {sorted(record)}, expected one {FRAME}")
    value = record[FRAME]
    frame = value.data if isinstance(value, Array) else value
    if not isinstance(frame, bytes):
        raise WireError(f"a {name} of {type(frame).__name__}, expected bytes")
    return frame
