"""Tasks and ballots arrive as they were, small or in chunks, through Flower's own serialisation."""

from __future__ import annotations

import random

import pytest
from flwr.app import RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

import fedvote
from fedvote.engines.flower import frame_record
from fedvote.engines.flower.flower_internals import message_nbytes
from fedvote.engines.flower.problem import receive_problem
from fedvote.engines.flower.replies import Ballot, read_reply, reply_message
from fedvote.engines.flower.tasks import Task, read_task, task_message
from fedvote.errors import ConfigError
from tests.engines.flower.grid import FakeGrid
from tests.engines.flower.messages import PROBLEM, over_the_wire


@pytest.mark.parametrize("chunked", [10, 10**6])
def test_a_task_and_its_answer_arrive_as_they_were(chunked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_record, "CHUNK", chunked)
    FakeGrid()
    frame = bytes(range(256)) * 50
    task = Task(PROBLEM, 7, 3, frame, bytes(range(32)))
    message = over_the_wire(task_message(task, 100, 60.0))
    assert read_task(message, receive_problem(message.content, RecordDict())) == task
    assert read_reply(over_the_wire(reply_message(Ballot(frame), message))) == Ballot(frame)


def test_no_object_of_a_long_frame_is_longer_than_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_record, "CHUNK", 2000)
    FakeGrid()
    frame = random.Random(0).randbytes(25_000)
    message = task_message(Task(PROBLEM, 7, 3, frame, bytes(range(32))), 100, 60.0)
    sizes = [len(part.deflate()) for part in get_all_nested_objects(message).values()]
    assert max(sizes) < 2500 and sum(size >= 2000 for size in sizes) >= 12


@pytest.mark.parametrize("theirs", ["0.0.1", None])
def test_a_task_of_another_version_is_refused_and_both_are_named(theirs: str | None) -> None:
    FakeGrid()
    message = task_message(Task(PROBLEM, 1, 0, b""), 100, 60.0)
    about = message.content.config_records["problem"]
    del about["version"]
    if theirs:
        about["version"] = theirs
    said = f"the server runs fedvote {theirs or 'of an earlier version'}, this client {fedvote.__version__}"
    with pytest.raises(ConfigError, match=said):
        receive_problem(message.content, RecordDict())


def test_no_two_messages_have_one_id() -> None:
    FakeGrid()
    task = Task(PROBLEM, 7, 3, b"frame")
    assert task_message(task, 100, 60.0).object_id != task_message(task, 100, 60.0).object_id


def test_the_size_of_a_message_is_the_frame_and_a_little_more() -> None:
    FakeGrid()
    sizes = [
        message_nbytes(reply_message(Ballot(bytes(count)), task_message(Task(PROBLEM, 1, 0, b""), 100, 60.0)))
        for count in (1000, 101_000)
    ]
    assert sizes[1] - sizes[0] == pytest.approx(100_000, abs=16)
    assert 1000 < sizes[0] < 2000
