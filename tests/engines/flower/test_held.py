"""Who holds the last broadcast is told less, and who turns out not to is sent the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Error, Message

from fedvote.engines.flower.client_app import ClientFailed
from fedvote.engines.flower.messages import read_task
from fedvote.rounds import held_before
from tests.engines.flower.grid import FakeGrid, Reply, elect, grid_of, in_round, number, run, silent, small
from tests.toy import assert_same


def test_who_answered_the_last_broadcast_is_told_less(tmp_path: Path) -> None:
    grid = grid_of(4)
    _, second, third = run(tmp_path, {2: in_round(2, silent)}, grid=grid)
    lengths = {client: length for client, length in told(grid, 3).items() if client != 2}
    assert len(set(lengths.values())) == 1 and told(grid, 3)[2] > lengths[0]
    assert third["downlink_bytes"] == sum(told(grid, 3).values()) and third["counted"] == [0, 1, 2, 3]
    assert second["downlink_bytes"] == 4 * told(grid, 2)[0]


def test_a_client_that_has_forgotten_the_last_broadcast_is_sent_the_whole_in_the_same_round(tmp_path: Path) -> None:
    def forgetful(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        if sum(m.metadata.dst_node_id == node for m in grid.sent) > 2:
            return [(1.0, grid.turn(node, message))]
        del grid.contexts[node]
        return cannot_read(grid, node, message)

    grid = grid_of(4)
    records = run(tmp_path / "forgetful", {1: in_round(2, forgetful)}, grid=grid)
    assert len(grid.sent) == 3 * 4 + 1
    for forgot, plain in zip(records, run(tmp_path / "plain", {}), strict=True):
        assert forgot["counted"] == [0, 1, 2, 3] and "failed" not in forgot and forgot["loss"] == plain["loss"]


@pytest.mark.parametrize("method", ["fedvote", "fedavg", "signum"])
def test_a_machine_that_makes_another_start_of_the_seed_is_sent_the_whole(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing and scaling weights is not the same to the last bit on every kind of processor."""

    def elsewhere(*arguments: Any) -> Any:
        return {name: value + 1 for name, value in (held_before(*arguments) or {}).items()}

    def other_machine(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        with monkeypatch.context() as patch:
            patch.setattr("fedvote.engines.flower.client.held_before", elsewhere)
            again = sum(m.metadata.dst_node_id == node for m in grid.sent) > 1
            return [(1.0, grid.turn(node, message))] if again else cannot_read(grid, node, message)

    grid = grid_of(4)
    (other,) = run(tmp_path / "other", {3: other_machine}, "rounds=1", f"method={method}", grid=grid)
    (plain,) = run(tmp_path / "plain", {}, "rounds=1", f"method={method}")
    assert len(grid.sent) == 5 and other["counted"] == [0, 1, 2, 3] and "failed" not in other
    assert told(grid, 1)[3] > 10 * told(grid, 1)[0] and other["loss"] == plain["loss"]


def test_who_says_for_ever_that_it_cannot_read_is_sent_the_whole_once(tmp_path: Path) -> None:
    def never(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return [(1.0, Message(Error(2, "NoReferenceError"), reply_to=message))]

    grid = grid_of(4)
    for record in run(tmp_path, {2: never}, grid=grid):
        assert record["counted"] == [0, 1, 3] and "NoReferenceError" in record["failed"][2]
    asked = sum(message.metadata.dst_node_id == number(grid, 2) for message in grid.sent)
    assert asked == 2 + 1 + 1  # in the first round twice, and the whole at once after that


def cannot_read(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
    with pytest.raises(ClientFailed, match="NoReferenceError") as failed:
        grid.turn(node, message)
    return [(1.0, Message(Error(2, f"{type(failed.value)}:<'{failed.value}'>"), reply_to=message))]  # Flower's words


def test_a_server_that_was_started_again_sends_everybody_the_whole(tmp_path: Path) -> None:
    """What nodes keep may have ended with the run that it was kept for."""
    config = small("rounds=2")
    first = elect(config, grid_of(4), tmp_path / "killed")
    next(first)
    first.close()
    grid, whole = grid_of(4), grid_of(4)
    (rest,) = elect(config, grid, tmp_path / "killed")
    *_, last = elect(config, whole, tmp_path / "whole")
    assert len(grid.sent) == 4 and rest.record["counted"] == [0, 1, 2, 3]
    assert min(told(grid, 2).values()) > max(told(whole, 2).values())
    assert_same(rest.state, last.state)


def told(grid: FakeGrid, round: int) -> dict[int, int]:
    """The length of the broadcast that each client was sent last in a round."""
    tasks = [read_task(message) for message in grid.sent if message.metadata.group_id == str(round)]
    return {task.client: len(task.broadcast) for task in tasks}
