"""A task: the server's message to one client in one round."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Message, MessageType, RecordDict

from fedvote.engines.flower.frame_record import frame_record, read_frame
from fedvote.engines.flower.problem import PROBLEM, Problem, problem_record

TASK, BROADCAST = "task", "broadcast"  # the records of a task's message, with `problem`
OPENING = "opening"  # and one more under a secure tally


@dataclass(frozen=True)
class Task:
    """One turn of training, asked of one client."""

    problem: Problem
    round: int
    client: int
    broadcast: bytes
    secret: bytes = field(default=b"", repr=False)  # of this client, for the whole run: it rounds by it
    opening: bytes = b""  # of a secure tally; empty: the server sees ballots


def task_message(task: Task, node: int, ttl: float, kind: str = MessageType.TRAIN, whole: bool = True) -> Message:
    """A task as a message to a node, with a time to live in seconds; `whole`: with the problem, not its digest.

    The nonce makes the message's id unguessable: no other node can answer it.
    """
    turn = ConfigRecord({"round": task.round, "client": task.client, "secret": task.secret, "nonce": os.urandom(16)})
    about = problem_record(task.problem, whole)
    content = RecordDict({PROBLEM: about, TASK: turn, BROADCAST: frame_record(task.broadcast)})
    if task.opening:
        content[OPENING] = frame_record(task.opening)
    return Message(content, node, kind, ttl=ttl, group_id=str(task.round))


def read_task(message: Message, problem: Problem) -> Task:
    """The task in a message, of a problem that the client has received with it or before."""
    turn = message.content.config_records[TASK]
    round, client = int(turn["round"]), int(turn["client"])  # type: ignore[arg-type]
    secret = bytes(turn["secret"])  # type: ignore[arg-type]
    opening = read_frame(message.content, OPENING) if OPENING in message.content else b""
    return Task(problem, round, client, read_frame(message.content, BROADCAST), secret, opening)
