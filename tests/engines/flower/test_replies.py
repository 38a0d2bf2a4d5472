"""A client's reply is one ballot or one refusal; the server reads nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from flwr.app import ConfigRecord, Error, Message, MetricRecord, RecordDict

from fedvote.engines.flower.replies import Failure, Malformed, Refusal, read_outcome, read_reply, reply_message
from fedvote.engines.flower.tasks import Task, task_message
from fedvote.errors import WireError
from tests.engines.flower.grid import FakeGrid
from tests.engines.flower.messages import PROBLEM, over_the_wire


def asked() -> Message:
    FakeGrid()
    return task_message(Task(PROBLEM, 1, 0, b""), 100, 60.0)


@pytest.mark.parametrize(
    "refusal", [Refusal("no-reference"), Refusal("no-problem"), Refusal("failed", "ValueError")], ids=str
)
def test_a_refusal_arrives_as_it_was(refusal: Refusal) -> None:
    assert read_reply(over_the_wire(reply_message(refusal, asked()))) == refusal


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"ballot": MetricRecord({"frame": 1})}),
        RecordDict({"ballot": ConfigRecord({"frame": "text"})}),
        RecordDict({"ballot": ConfigRecord({"frame": b"", "more": 1})}),
        RecordDict({"ballot": ConfigRecord({"frame": b""}), "more": ConfigRecord({"frame": b""})}),
        RecordDict({"ballot": ConfigRecord({"frame": b""}), "refusal": ConfigRecord({"code": "no-reference"})}),
    ],
    ids=["nothing", "a metric", "text", "two fields", "two records", "both"],
)
def test_a_reply_that_is_not_one_frame_is_refused(content: RecordDict) -> None:
    message = Message(content, reply_to=asked())
    with pytest.raises(WireError, match="expected"):
        read_reply(message)
    assert isinstance(read_outcome(message), Malformed)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"code": "unheard-of"},
        {"code": 1},
        {"code": ["no-reference"]},
        {"code": "no-reference", "error": "ValueError"},
        {"code": "no-reference", "more": 1},
        {"code": "failed"},
        {"code": "failed", "error": b"ValueError"},
        {"code": "failed", "error": "ValueError: patient 4711 has a missing value"},
        {"code": "failed", "error": ""},
        {"code": "failed", "error": "ValueError", "more": 1},
        {"error": "ValueError"},
    ],
    ids=str,
)
def test_a_refusal_of_another_shape_is_refused_itself(fields: dict[str, Any]) -> None:
    with pytest.raises(
        WireError, match="expected the code no-reference or no-problem alone, or failed with the name of an error"
    ):
        read_reply(Message(RecordDict({"refusal": ConfigRecord(fields)}), reply_to=asked()))


def test_a_refusal_that_is_no_configuration_record_is_refused_itself() -> None:
    with pytest.raises(WireError, match="expected the code"):
        read_reply(Message(RecordDict({"refusal": MetricRecord({"code": 1})}), reply_to=asked()))


@pytest.mark.parametrize(
    ("code", "retry"), [(1, False), (2, False), (3, True), (4, True), (5, True), (7, False), (8, True), (99, False)]
)
def test_flowers_errors_are_judged_by_their_number_alone(code: int, retry: bool) -> None:
    found = {
        read_outcome(Message(Error(code, words), reply_to=asked()))
        for words in ("no-reference", "NoReferenceError", "its process died", "")
    }
    assert all(isinstance(outcome, Failure) and outcome.retry == retry for outcome in found)
