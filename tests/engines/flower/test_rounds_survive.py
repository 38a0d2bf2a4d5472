"""Clients that die, hang, raise or send garbage: the round goes on without them, and says so."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from flwr.app import Array, ConfigRecord, Error, Message, RecordDict

from fedvote.engines.flower.poll import TRIES
from fedvote.engines.flower.replies import Ballot, Refusal, reply_message
from fedvote.engines.flower.roster import identity
from fedvote.engines.flower.server import NoQuorum
from fedvote.errors import ConfigError
from fedvote.runs.experiment import federation
from fedvote.runs.folder import RunFolder
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
    number,
    refuses,
    run,
    sends,
    silent,
    small,
)


@pytest.mark.parametrize(
    ("behave", "why"),
    [
        (faulty(2), "its code raised"),
        (refuses(Refusal("failed", "ValueError")), "its code raised (ValueError, see the log on the client's machine)"),
        (faulty(5), "its node went away"),
        (faulty(8), "its process died"),
        (silent, "no answer before the round closed"),
    ],
    ids=["raises", "says that it failed", "node dies", "process dies", "hangs"],
)
def test_a_round_goes_on_without_a_client_that_fails_and_names_it(behave: Behaviour, why: str, tmp_path: Path) -> None:
    first, second, third = run(tmp_path, {2: in_round(2, behave)})
    assert why in second["failed"][2] and second["failed"].keys() == {2}
    assert second["counted"] == [0, 1, 3]
    assert first["counted"] == third["counted"] == [0, 1, 2, 3]
    assert third["returned"] == [2] and "failed" not in third


def test_what_a_client_says_of_itself_can_be_printed(tmp_path: Path) -> None:
    _, second, _ = run(tmp_path, {2: in_round(2, faulty(2, reason="\x1b]0;title\x07\x1b[2J" + 500 * "long "))})
    assert second["failed"][2].startswith("its code raised ( ]0;title  [2Jlong") and len(second["failed"][2]) < 250
    assert second["failed"][2].isprintable()


def test_a_reply_that_cannot_be_read_is_refused_and_named(tmp_path: Path) -> None:
    """Flower makes objects of what a client sent, and raises whatever that raises."""
    grid = grid_of(4)
    grid.pulls[number(grid, 2)] = lambda: int("noise")
    for record in run(tmp_path, {}, "rounds=2", grid=grid):
        assert record["counted"] == [0, 1, 3]
        assert record["refused"].keys() == {2} and "its answer cannot be read (invalid literal" in record["refused"][2]


def gone() -> None:
    raise httpx.ConnectError("no SuperLink")


def test_a_connection_that_is_lost_for_good_stops_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedvote.engines.flower.mailbox.LOST_SECONDS", 0.0)
    grid = grid_of(4)
    grid.pulls = {node: gone for node in grid.nodes}
    with pytest.raises(httpx.ConnectError):
        run(tmp_path, {}, grid=grid)


def test_a_connection_that_is_lost_for_a_moment_ends_no_run(tmp_path: Path) -> None:
    """The reply is lost with it, so the client is missing in this round, and only there."""
    grid = grid_of(4)
    failures = [1]
    grid.pulls[number(grid, 2)] = lambda: gone() if failures and failures.pop() else None
    first, second = run(tmp_path, {}, "rounds=2", grid=grid)
    assert first["counted"] == [0, 1, 3] and second["counted"] == [0, 1, 2, 3]


def test_a_push_that_fails_three_times_costs_one_client_its_round(tmp_path: Path) -> None:
    grid = grid_of(4)
    bad, tried = number(grid, 2), list[int]()
    push = grid.push_messages

    def push_messages(messages: Iterable[Message]) -> Iterable[str]:
        (message,) = messages
        if message.metadata.dst_node_id == bad and message.metadata.group_id == "1":
            tried.append(1)
            raise httpx.WriteError("broken pipe")
        return push([message])

    grid.push_messages = push_messages  # type: ignore[method-assign]
    first, second = run(tmp_path, {}, "rounds=2", "flower.deadline=600", "flower.patience=3600", grid=grid)
    assert len(tried) == TRIES and first["failed"] == {2: "its task could not be sent (broken pipe)"}
    assert first["counted"] == [0, 1, 3] and first["seconds"] < 30
    assert second["counted"] == [0, 1, 2, 3] and second["returned"] == [2]


def test_a_push_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    grid = grid_of(4)
    push, failures = grid.push_messages, [1, 1]

    def push_messages(messages: Iterable[Message]) -> Iterable[str]:
        if failures:
            failures.pop()
            raise OSError("try again")
        return push(messages)

    grid.push_messages = push_messages  # type: ignore[method-assign]
    (record,) = run(tmp_path, {}, "rounds=1", grid=grid)
    assert record["counted"] == [0, 1, 2, 3] and "failed" not in record


@pytest.mark.parametrize("quorum", [0.6, 1.0])
def test_a_restart_does_not_wait_for_the_dead(quorum: float, tmp_path: Path) -> None:
    """One dead client of five, default deadline: the first round closes within a minute of the fourth ballot."""
    grid, config = grid_of(5), small("federation.clients=5", f"flower.quorum={quorum}", "rounds=3")
    rounds = elect(config, grid, tmp_path)
    next(rounds)
    rounds.close()
    dead = number(grid, 3)
    del grid.nodes[dead]
    began = grid.now
    restarted = elect(config, grid, tmp_path)
    assert len(next(restarted).record["counted"]) >= 3 and grid.now - began < 60
    grid.nodes[dead] = bytes([dead - 100]) * 8  # it seems to be here, and does not answer
    grid.behave[dead] = silent
    began = grid.now
    assert len(next(restarted).record["counted"]) >= 3 and grid.now - began < 60


def test_a_client_that_was_away_is_asked_and_counted_if_it_is_back_in_time(tmp_path: Path) -> None:
    grid = grid_of(4)
    behave = {1: in_round(1, silent)}
    first, second = run(tmp_path, behave, "rounds=2", grid=grid)
    assert first["counted"] == [0, 2, 3] and second["counted"] == [0, 1, 2, 3] and second["returned"] == [1]


def test_a_reply_that_is_announced_and_never_comes_holds_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedvote.engines.flower.mailbox.FETCH_SECONDS", 0.1)
    grid, never = grid_of(4), threading.Event()
    grid.pulls[number(grid, 2)] = never.wait
    try:
        records = run(tmp_path, {}, "rounds=2", grid=grid)
    finally:
        never.set()
    assert [record["counted"] for record in records] == [[0, 1, 3]] * 2
    assert records[0]["failed"] == {2: "no answer before the round closed"}
    assert records[0]["seconds"] < 25  # the deadline is 20


def test_a_failure_is_attributed_by_the_message_and_not_by_its_sender(tmp_path: Path) -> None:
    def from_flower(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        ((seconds, reply),) = faulty(5)(grid, node, message)
        reply.metadata.__dict__["_src_node_id"] = 1
        return [(seconds, reply)]

    _, second, _ = run(tmp_path, {3: in_round(2, from_flower)})
    assert list(second["failed"]) == [3] and second["counted"] == [0, 1, 2]


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


@pytest.mark.parametrize("behave", [alter(flip), silent, faulty(2)], ids=["noise", "silent", "raises"])
@pytest.mark.parametrize("rule", ["krum", "trimmed-mean"])
def test_a_client_without_which_a_rule_cannot_work_costs_a_round_and_not_the_run(
    behave: Behaviour, rule: str, tmp_path: Path
) -> None:
    told = {"krum": "method.aggregate.byzantine=0", "trimmed-mean": "method.aggregate.trim=1"}[rule]
    settings = ("method=fedavg", f"method.aggregate={rule}", told, "flower.minimum=0.25")
    others = {client: in_round(2, behave) for client in (0, 1)}  # two are left, and both rules need three
    first, second, third = run(tmp_path, others, *settings)
    assert first["counted"] == third["counted"] == [0, 1, 2, 3] and second["counted"] == []
    assert {2, 3} <= set(second["refused"]) and "not counted, since" in second["refused"][2]
    assert second["loss"] == first["loss"] != third["loss"]


def test_what_a_client_says_of_itself_fills_no_files(tmp_path: Path) -> None:
    def raises(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return [(1.0, Message(Error(2, "A" * 10_000_000), reply_to=message))]

    names = sends(RecordDict({"B" * 1_000_000: ConfigRecord({"c": 1})}))
    refusal = refuses(Refusal("failed", "C" * 1_000_000))
    (record,) = run(tmp_path, {0: raises, 1: names, 2: refusal}, "rounds=1", "flower.minimum=0.25")
    assert record["counted"] == [3]
    assert max(map(len, (record["failed"][0], record["refused"][1], record["failed"][2]))) < 300
    assert RunFolder(tmp_path).metrics_file.stat().st_size < 10_000


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


def test_whoever_a_round_waits_for_is_said_by_name(tmp_path: Path) -> None:
    grid = grid_of(4)
    allowed = {identity(node): f"hospital {node.node_id}" for node in grid.get_nodes()}
    missing = number(grid, 1)
    grid.behave = {missing: silent}
    with pytest.raises(NoQuorum, match=rf"missing: 1 hospital {missing} \("):
        list(
            elect(
                small("rounds=1", "flower.minimum=1", "flower.deadline=5", "flower.patience=10"),
                grid,
                tmp_path,
                allowed,
            )
        )


def test_attacks_that_need_to_see_others_are_refused_before_round_1(tmp_path: Path) -> None:
    config = small("federation.hostile=1", "attack=omniscient")
    with pytest.raises(ConfigError, match="different machines"):
        next(elect(config, grid_of(4), tmp_path))
    assert federation(config, "cpu").plan.attack.omniscient


def test_the_text_of_an_error_does_not_leave_the_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = grid_of(1)
    grid.behave = {100: lambda grid, node, message: [(1.0, grid.turn(node, message))]}
    config = small("federation.clients=1", "rounds=1", "flower.deadline=2", "flower.patience=4")

    def secret(*_: Any) -> bytes:
        raise ValueError("patient 4711 has a missing value")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedvote.engines.flower.client_app.take_turn", secret)
        with pytest.raises(NoQuorum, match="ValueError, see the log") as stop:
            list(elect(config, grid, tmp_path))
    assert "4711" not in str(stop.value) and "4711" in capsys.readouterr().err  # the client's own log


@pytest.mark.parametrize("code", ["resend-everything", "", "no-reference\x1b[2J", 3, b"no-reference"], ids=repr)
def test_a_refusal_with_an_unknown_code_is_one_clients_lost_vote(code: Any, tmp_path: Path) -> None:
    grid = grid_of(4)
    refusal = RecordDict({"refusal": ConfigRecord({"code": code})})
    (record,) = run(tmp_path, {1: sends(refusal)}, "rounds=1", grid=grid)
    assert record["counted"] == [0, 2, 3] and "expected the code" in record["refused"][1] and len(grid.sent) == 4
    assert record["refused"][1].isprintable()


@pytest.mark.parametrize("change", ["content", "record"])
def test_a_reply_of_another_type_than_flowers_own_client_sends_stops_nobody_else(change: str, tmp_path: Path) -> None:
    """Flower makes whatever object a client names, and calls it the content."""
    array = Array("uint8", (1,), "bytes", b"x")

    def odd(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        if change == "content":
            reply.__dict__["_content"] = array
        else:
            dict.__setitem__(reply.content.__dict__["_data"], "ballot", array)
        return [(1.0, reply)]

    (record,) = run(tmp_path, {1: odd}, "rounds=1")
    assert record["counted"] == [0, 2, 3] and "its answer cannot be read" in record["refused"][1]
