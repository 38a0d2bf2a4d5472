"""A client that has the last broadcast is sent what changed; one that has not is sent the whole.

The whole builds on the start that the seed makes, except for clients that say that they make another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from flwr.app import Message

from fedvote import FedVote
from fedvote.engines.flower import mailbox as mail
from fedvote.engines.flower.asking import Asker
from fedvote.engines.flower.hearing import hear
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.replies import Refusal, read_reply
from fedvote.engines.flower.tasks import read_task
from fedvote.rounds import Round
from tests.engines.flower.grid import (
    Behaviour,
    FakeGrid,
    Reply,
    after,
    elect,
    faulty,
    grid_of,
    honest,
    in_round,
    lacks_reference,
    number,
    refuses,
    run,
    silent,
    small,
)
from tests.engines.flower.messages import PROBLEM
from tests.toy import assert_same


def test_who_answered_the_last_broadcast_is_told_less(tmp_path: Path) -> None:
    grid = grid_of(4)
    _, second, third = run(tmp_path, {2: in_round(2, silent)}, grid=grid)
    lengths = {client: length for client, length in broadcast_bytes(grid, 3).items() if client != 2}
    assert len(set(lengths.values())) == 1 and broadcast_bytes(grid, 3)[2] > lengths[0]
    assert third["downlink_bytes"] == sum(broadcast_bytes(grid, 3).values()) and third["counted"] == [0, 1, 2, 3]
    assert second["downlink_bytes"] == 4 * broadcast_bytes(grid, 2)[0]


@pytest.mark.parametrize("kept", [1, 3])
def test_a_client_that_has_forgotten_the_last_broadcast_is_sent_the_whole_in_the_same_round(
    kept: int, tmp_path: Path
) -> None:
    def forgetful(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        if sum(m.metadata.dst_node_id == node for m in grid.sent) > 2:
            return [(1.0, grid.turn(node, message))]
        grid.contexts[node].state.array_records.clear()
        return lacks_reference(grid, node, message)

    grid = grid_of(4)
    kept_broadcasts = f"federation.kept_broadcasts={kept}"
    records = run(tmp_path / "forgetful", {1: in_round(2, forgetful)}, kept_broadcasts, grid=grid)
    assert len(grid.sent) == 3 * 4 + 1
    for forgot, plain in zip(records, run(tmp_path / "plain", {}, kept_broadcasts), strict=True):
        assert forgot["counted"] == [0, 1, 2, 3] and "failed" not in forgot and forgot["loss"] == plain["loss"]


def test_who_missed_a_round_is_told_what_changed_since_its_own_broadcast_if_the_server_kept_that(
    tmp_path: Path,
) -> None:
    third: dict[int, list[int]] = {}
    for kept in (1, 2):
        grid, folder = grid_of(4), tmp_path / str(kept)
        records = run(folder, {2: in_round(2, silent)}, *FEW, f"federation.kept_broadcasts={kept}", grid=grid)
        assert records[2]["counted"] == [0, 1, 2, 3] and len(grid.sent) == 3 * 4
        third[kept] = [broadcast_bytes(grid, 3)[client] for client in (0, 2)]
    assert third[1][0] == third[2][0] < third[2][1] < third[1][1]


FEW = ("method.levels=3", "method.level_rounding=carry", "method.counts=changes")


def lost(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
    """A client that takes its turn, and whose answer never arrives."""
    grid.turn(node, message)
    return []


@pytest.mark.parametrize("then", [after(25.0), lost], ids=["late", "lost"])
def test_whose_ballot_did_not_arrive_in_time_can_read_what_changed_since_its_last_ballot(
    then: Behaviour, tmp_path: Path
) -> None:
    """It has a newer broadcast than the server knows of."""
    downlink = []
    for kept in (1, 2):
        grid, settings = grid_of(4), (*FEW, f"federation.kept_broadcasts={kept}", "rounds=4")
        records = run(tmp_path / str(kept), {2: in_round(2, then)}, *settings, grid=grid)
        assert [record["counted"] for record in records[1:3]] == [[0, 1, 3], [0, 1, 2, 3]]
        assert len(grid.sent) == 4 * 4  # nobody is asked twice
        downlink.append(records[2]["downlink_bytes"])
    assert downlink[0] > downlink[1]


def test_a_client_that_is_late_in_every_round_is_sent_what_changed_since_its_last_late_ballot(tmp_path: Path) -> None:
    downlink = []
    for kept in (1, 3):
        grid, settings = grid_of(4), (*FEW, f"federation.kept_broadcasts={kept}", "rounds=6")
        records = run(tmp_path / str(kept), {2: after(25.0)}, *settings, grid=grid)
        assert all(record["counted"] == [0, 1, 3] for record in records)
        assert len(grid.sent) == 6 * 4
        downlink.append(sum(record["downlink_bytes"] for record in records[2:]))
    assert downlink[0] > downlink[1]


def test_a_client_that_lacks_its_broadcast_says_so_once(tmp_path: Path) -> None:
    """Until a ballot of it arrives, the server sends it the whole."""

    def forgetful(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        grid.contexts[node].state.array_records.clear()
        reply = grid.turn(node, message)
        return [(1.0, reply)] if read_reply(reply) == Refusal("no-reference") else []

    grid = grid_of(4)
    settings = (*FEW, "federation.kept_broadcasts=9", "rounds=5")
    behave = {2: in_round(1, honest, otherwise=forgetful)}
    assert all(record["counted"] == [0, 1, 3] for record in run(tmp_path, behave, *settings, grid=grid)[1:])
    assert len(grid.sent) == 5 * 4 + 1


@pytest.mark.parametrize("method", ["fedvote", "fedvote method.levels=3", "fedavg", "signum"])
def test_a_machine_that_makes_another_start_of_the_seed_is_sent_the_whole(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing and scaling weights is not the same to the last bit on every kind of processor."""

    reference = Round.reference

    def elsewhere(*arguments: Any) -> Any:
        return {name: value + 1 for name, value in (reference(*arguments) or {}).items()}

    # the start itself may be the same: it is always made on a CPU
    def other_machine(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        with monkeypatch.context() as patch:
            patch.setattr(Round, "reference", elsewhere)
            again = sum(m.metadata.dst_node_id == node for m in grid.sent) > 1
            return [(1.0, grid.turn(node, message))] if again else lacks_reference(grid, node, message)

    grid = grid_of(4)
    (other,) = run(tmp_path / "other", {3: other_machine}, "rounds=1", *f"method={method}".split(), grid=grid)
    (plain,) = run(tmp_path / "plain", {}, "rounds=1", *f"method={method}".split())
    assert len(grid.sent) == 5 and other["counted"] == [0, 1, 2, 3] and "failed" not in other
    assert broadcast_bytes(grid, 1)[3] > 10 * broadcast_bytes(grid, 1)[0] and other["loss"] == plain["loss"]


@pytest.mark.parametrize("method", ["fedvote", "fedvote method.levels=3"])
def test_a_machine_that_makes_another_start_is_found_out_once(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by a client that forgets all broadcasts, so that every whole one would build on the start."""
    start, refused = FedVote.start_level, list[int]()

    def other_machine(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        with monkeypatch.context() as patch:
            patch.setattr(FedVote, "start_level", lambda *arguments: start(*arguments).flip(0))
            reply = grid.turn(node, message)
        grid.contexts[node].state.array_records.clear()
        if read_reply(reply) == Refusal("no-reference"):
            refused.append(int(message.metadata.group_id))
        return [(1.0, reply)]

    grid = grid_of(4)
    settings = "rounds=3", *f"method={method}".split()
    others = run(tmp_path / "other", {3: other_machine}, *settings, grid=grid)
    for other, plain in zip(others, run(tmp_path / "plain", {}, *settings), strict=True):
        assert other["counted"] == [0, 1, 2, 3] and "failed" not in other and other["loss"] == plain["loss"]
    # the last broadcast and the start in round 2; later the last broadcast alone
    assert refused == [2, 2, 3]


def test_only_the_first_refusal_of_this_rounds_task_says_that_a_client_makes_another_start() -> None:
    mailbox, poll = Mock(), Poll(2, [0, 1, 2, 3], small().flower, lambda *_: None)
    mailbox.collect.return_value = [
        mail.Reply(mail.Request(1, 0), Refusal("no-reference")),
        mail.Reply(mail.Request(2, 1), Refusal("no-reference"), repeated=True),
        mail.Reply(mail.Request(2, 2), Refusal("no-problem")),
        mail.Reply(mail.Request(2, 3), Refusal("no-reference")),
    ]
    asker = Asker(mailbox, PROBLEM, 60.0)
    assert not hear(mailbox, poll, Mock(), asker, Mock())
    assert asker.other_start == {3}


def test_who_says_for_ever_that_it_cannot_read_is_sent_the_whole_once(tmp_path: Path) -> None:
    grid = grid_of(4)
    for record in run(tmp_path, {2: refuses(Refusal("no-reference"))}, grid=grid):
        assert record["counted"] == [0, 1, 3]
        assert record["failed"][2] == "it does not have the broadcast that its task builds on"
    asked = sum(message.metadata.dst_node_id == number(grid, 2) for message in grid.sent)
    assert asked == 3 + 1 + 1  # in the first round three times, and the whole at once after that


@pytest.mark.parametrize(
    "behave",
    [faulty(2, reason="NoReferenceError: no-reference"), refuses(Refusal("failed", "NoReferenceError"))],
    ids=["Flower's error", "a refusal"],
)
def test_the_words_of_an_error_decide_nothing(behave: Behaviour, tmp_path: Path) -> None:
    grid = grid_of(4)
    run(tmp_path, {2: behave}, "rounds=1", grid=grid)
    assert len(grid.sent) == 4  # nobody is sent the whole


def test_a_server_that_was_started_again_sends_everybody_the_whole(tmp_path: Path) -> None:
    """What nodes keep may have ended with the run that it was kept for."""
    config = small("rounds=3")
    first = elect(config, grid_of(4), tmp_path / "killed")
    assert [next(first).round, next(first).round] == [1, 2]
    first.close()
    grid, whole = grid_of(4), grid_of(4)
    (rest,) = elect(config, grid, tmp_path / "killed")
    *_, last = elect(config, whole, tmp_path / "whole")
    assert len(grid.sent) == 4 and rest.record["counted"] == [0, 1, 2, 3]
    assert min(broadcast_bytes(grid, 3).values()) > max(broadcast_bytes(whole, 3).values())
    assert_same(rest.state, last.state)


def broadcast_bytes(grid: FakeGrid, round: int) -> dict[int, int]:
    """The length of the broadcast that each client was sent last in a round."""
    tasks = [read_task(message, PROBLEM) for message in grid.sent if message.metadata.group_id == str(round)]
    return {task.client: len(task.broadcast) for task in tasks}
