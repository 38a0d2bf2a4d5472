"""One client, one vote: altered, repeated, stolen and second ballots are refused, and strangers have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from fedvote.engines.flower.replies import Ballot, reply_message
from fedvote.engines.flower.roster import identity
from tests.engines.flower.grid import (
    PATIENT,
    Behaviour,
    FakeGrid,
    Reply,
    alter,
    elect,
    faulty,
    flip,
    frame_of,
    grid_of,
    in_round,
    run,
    sends,
    silent,
    small,
)


@pytest.mark.parametrize(
    "change",
    [flip, lambda frame: frame[:-1], lambda frame: b"", lambda frame: frame + b"x", lambda frame: b"\0" * 40],
    ids=["a bit", "cut", "empty", "too long", "zeros"],
)
def test_an_altered_ballot_is_refused_and_the_round_is_that_of_the_others(change: Any, tmp_path: Path) -> None:
    behave: dict[int, Behaviour] = {1: in_round(1, alter(change))}
    first, *_ = run(tmp_path / "altered", behave, "rounds=1")
    (without,) = run(tmp_path / "without", {1: in_round(1, silent)}, "rounds=1")
    assert list(first["refused"]) == [1] and first["counted"] == without["counted"] == [0, 2, 3]
    assert first["loss"] == without["loss"]


def test_a_ballot_of_an_earlier_round_sent_again_is_refused(tmp_path: Path) -> None:
    kept: list[bytes] = []

    def replay(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        kept.append(frame_of(grid.turn(node, message)))
        return [(1.0, reply_message(Ballot(kept[0]), message))]

    first, second, _ = run(tmp_path, {0: replay})
    assert first["counted"] == [0, 1, 2, 3] and second["counted"] == [1, 2, 3]
    assert "round 1, expected 2" in second["refused"][0]


def test_a_ballot_of_another_client_is_refused(tmp_path: Path) -> None:
    stolen: list[bytes] = []

    def honest_but_overheard(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        stolen.append(frame_of(grid.turn(node, message)))
        return [(1.0, reply_message(Ballot(stolen[0]), message))]

    def thief(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return [(1.0, reply_message(Ballot(stolen[0]), message))]

    first, *_ = run(tmp_path, {0: honest_but_overheard, 1: thief}, "rounds=1")
    assert first["counted"] == [0, 2, 3] and "client 0, expected 1" in first["refused"][1]


def test_anything_but_one_frame_is_refused(tmp_path: Path) -> None:
    chatty = RecordDict({"ballot": ConfigRecord({"frame": b"", "name": "Ada"})})
    first, *_ = run(tmp_path, {1: sends(chatty)}, "rounds=1")
    assert first["counted"] == [0, 2, 3] and "expected one frame" in first["refused"][1]


def test_one_node_has_one_vote_a_round(tmp_path: Path) -> None:
    def twice(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        return [(1.0, reply), (1.0, reply_message(Ballot(frame_of(reply)), message))]

    records = run(tmp_path / "twice", {1: twice})
    plain = run(tmp_path / "plain", {})
    for a, b in zip(records, plain, strict=True):
        assert a["second"] == {1: 1} and a["counted"] == b["counted"] and a["loss"] == b["loss"]


def test_a_client_that_is_asked_again_still_has_one_vote(tmp_path: Path) -> None:
    """Its first answer was given up, it was asked again, and then both came."""

    def lost_then_found(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        if sum(m.metadata.dst_node_id == node for m in grid.sent) > 1:
            return [(3.0, reply)]
        ((seconds, error),) = faulty(4)(grid, node, message)
        return [(seconds, error)]

    (first,) = run(tmp_path / "again", {1: lost_then_found}, "rounds=1")
    (plain,) = run(tmp_path / "plain", {}, "rounds=1")
    assert first["counted"] == [0, 1, 2, 3] and "failed" not in first
    assert 4 * first["downlink_bytes"] == 5 * plain["downlink_bytes"]


def test_a_node_beyond_the_number_of_clients_has_no_vote(tmp_path: Path) -> None:
    config, grid = small("rounds=2"), grid_of(4)
    run = elect(config, grid, tmp_path)
    next(run)
    grid.nodes[666] = b"stranger"
    grid.sleep(10)
    (last,) = run
    assert len(last.record["turned_away"]) == 1 and last.record["counted"] == [0, 1, 2, 3]
    assert 666 not in {message.metadata.dst_node_id for message in grid.sent}


def test_a_node_whose_key_the_server_does_not_have_has_no_vote(tmp_path: Path) -> None:
    """Although the SuperLink let it in, and although there is a number left."""
    grid = grid_of(4)
    allowed = {identity(node): str(node.node_id) for node in grid.get_nodes() if node.node_id != 102}
    (snapshot,) = elect(small(*PATIENT, "rounds=1"), grid, tmp_path, allowed)
    assert len(snapshot.record["counted"]) == 3 and len(snapshot.record["turned_away"]) == 1
    assert 102 not in {message.metadata.dst_node_id for message in grid.sent}
