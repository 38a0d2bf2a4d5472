"""A few bytes on the wire do not become gigabytes on the server, and who tries that loses a vote."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from fedvote.engines.flower.array_limit import LONGEST_LIST, at_most
from fedvote.engines.flower.replies import Ballot, reply_message
from fedvote.engines.flower.tasks import Task, task_message
from fedvote.errors import WireError
from tests.engines.flower.grid import FakeGrid, grid_of, number, run
from tests.engines.flower.messages import PROBLEM

CHUNK = 5 * 2**20  # Flower's
Parts = dict[str, bytes]


def asked() -> Message:
    FakeGrid()
    return task_message(Task(PROBLEM, 1, 0, b""), 100, 60.0)


def parts_of(message: Message) -> Parts:
    """The objects that Flower sends, by their names."""
    return {name: part.deflate() for name, part in get_all_nested_objects(message).items()}


def array(nbytes: int) -> Array:
    return Array("uint8", (nbytes,), "bytes", bytes(nbytes))


def bomb(chunks: int) -> tuple[str, Parts]:
    """A reply of equal chunks, of which one travels."""
    message = Message(RecordDict({"ballot": ArrayRecord({"frame": array(chunks * CHUNK)})}), reply_to=asked())
    return message.object_id, parts_of(message)


def test_what_chunks_become_is_added_up_before_it_is_made() -> None:
    name, parts = bomb(20)
    assert sum(map(len, parts.values())) < CHUNK + 10_000
    tracemalloc.start()
    with at_most(10 * CHUNK), pytest.raises(WireError, match=f"an array of {20 * CHUNK} bytes, expected"):
        inflate_object_from_contents(name, parts)
    assert tracemalloc.get_traced_memory()[1] < 3 * CHUNK
    tracemalloc.stop()


def test_the_limit_holds_for_all_arrays_of_a_reply_together() -> None:
    records = ArrayRecord({str(count): array(count) for count in (CHUNK, CHUNK + 1, CHUNK + 2)})
    message = Message(RecordDict({"ballot": records}), reply_to=asked())
    with at_most(3 * CHUNK + 3):
        inflate_object_from_contents(message.object_id, parts_of(message))
    with at_most(3 * CHUNK + 2), pytest.raises(WireError, match="bytes, expected"):
        inflate_object_from_contents(message.object_id, parts_of(message))


def test_a_list_of_chunks_that_is_itself_too_long_is_not_read() -> None:
    content = (
        array(1).deflate().replace(b'"arraychunk_ids": [0]', b'"arraychunk_ids": [' + b"0," * LONGEST_LIST + b"0]")
    )
    with at_most(CHUNK), pytest.raises(WireError, match="list of chunks"):
        inflate_object_from_contents("array", {"array": content, **parts_of_chunks(array(1))})


def parts_of_chunks(made: Array) -> Parts:
    return {name: chunk.deflate() for name, chunk in (made.children or {}).items()}


def test_a_frame_within_the_limit_arrives_as_it_was() -> None:
    frame = bytes(range(256)) * 2**16
    message = reply_message(Ballot(frame), asked())
    with at_most(len(frame)):
        made = inflate_object_from_contents(message.object_id, parts_of(message))
    assert isinstance(made, Message)
    value = made.content.array_records["ballot"]["frame"]
    assert value.data == frame and type(value) is Array


def test_a_client_whose_reply_would_fill_the_memory_is_refused_and_the_round_goes_on(tmp_path: Path) -> None:
    name, parts = bomb(20)
    grid = grid_of(4)
    grid.pulls[number(grid, 2)] = lambda: inflate_object_from_contents(name, dict(parts))
    (record,) = run(tmp_path, {}, "rounds=1", grid=grid)
    assert record["counted"] == [0, 1, 3] and record["refused"].keys() == {2}
    assert f"an array of {20 * CHUNK} bytes, expected" in record["refused"][2]
