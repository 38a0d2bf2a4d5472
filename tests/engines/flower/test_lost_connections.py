"""Connections that are lost, for a moment or for good, and messages that do not get through."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
from flwr.app import Message

from fedvote.engines.flower.poll import TRIES
from tests.engines.flower.grid import (
    grid_of,
    number,
    run,
)


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


def test_a_server_whose_superlink_is_gone_can_be_stopped_while_it_sends(tmp_path: Path) -> None:
    """As Flower stops it, by a signal that another of its threads raises."""
    grid, never = grid_of(4), threading.Event()
    grid.push_messages = lambda messages: [str(never.wait(20))]  # type: ignore[method-assign]
    began = time.monotonic()
    threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, {}, grid=grid)
    finally:
        never.set()
    assert time.monotonic() - began < 10
