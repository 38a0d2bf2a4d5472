"""When a round closes: at a quorum, at a deadline with the minimum, or never, and who is asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from fedvote.engines.flower.asking import time_to_live
from fedvote.engines.flower.poll import TRIES
from fedvote.engines.flower.server import NoQuorum
from fedvote.network.round_metrics import judge
from fedvote.runs.config import Config
from fedvote.runs.folder import RunFolder
from tests.engines.flower.grid import (
    PATIENT,
    Behaviour,
    FakeGrid,
    Reply,
    after,
    alter,
    elect,
    faulty,
    flip,
    grid_of,
    in_round,
    number,
    run,
    silent,
    small,
)


def elected(config: Config, grid: FakeGrid, folder: Path) -> list[Any]:
    return [snapshot.record for snapshot in elect(config, grid, folder)]


def once(round: int, then: Behaviour) -> Behaviour:
    """The first time it is asked in this round; honest after."""
    done: list[int] = []

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        done.append(1)
        return then(grid, node, message)

    def choose(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        hit = message.metadata.group_id == str(round) and not done
        return behave(grid, node, message) if hit else [(1.0, grid.turn(node, message))]

    return choose


def test_a_turn_that_takes_longer_than_messages_live_counts_in_the_end(tmp_path: Path) -> None:
    """Below the minimum the server waits: 70 s are more than a deadline and a half, and twice that."""
    (record,) = run(tmp_path, {c: after(70) for c in range(4)}, "rounds=1", "flower.patience=1000")
    assert record["counted"] == [0, 1, 2, 3]


def test_no_number_of_failures_makes_a_message_live_without_end() -> None:
    lives = [time_to_live(2.0, failures) for failures in (0, 1, 2, 10**6)]
    assert lives[:3] == [3.0, 6.0, 12.0] and lives[2] < lives[3] < 10_000


def test_a_client_that_dies_again_and_again_is_not_asked_without_end(tmp_path: Path) -> None:
    grid = grid_of(4)
    (record,) = run(tmp_path, {1: faulty(8)}, "rounds=1", "flower.deadline=600", "flower.patience=3600", grid=grid)
    assert record["counted"] == [0, 2, 3] and "its process died" in record["failed"][1]
    assert record["seconds"] < 30 and len(grid.sent) == 3 + TRIES


def test_a_round_that_cannot_have_its_minimum_any_more_does_not_wait_for_it(tmp_path: Path) -> None:
    grid = grid_of(4)
    with pytest.raises(NoQuorum, match=r"has 1 of the 2 ballots.*refused clients get no second vote, after [0-9] s"):
        run(tmp_path, {c: alter(flip) for c in (0, 1, 2)}, grid=grid)


def test_a_late_ballot_counts_if_it_comes_before_the_next_broadcast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quorum closes the round; while the server evaluates, one more ballot comes."""
    behave: dict[int, Behaviour] = {3: after(5.0)}
    (closed,) = run(tmp_path / "closed", behave, "flower.quorum=0.75", "rounds=1")
    grid = grid_of(4)

    def slowly(*arguments: Any) -> dict[str, float]:
        grid.now += 10
        return judge(*arguments)

    monkeypatch.setattr("fedvote.federation.judge", slowly)
    (late,) = run(tmp_path / "late", behave, "flower.quorum=0.75", "rounds=1", grid=grid)
    (all_four,) = run(tmp_path / "all", {}, "rounds=1")
    assert closed["counted"] == [0, 1, 2] and late["counted"] == [0, 1, 2, 3]
    assert late["loss"] == all_four["loss"] != closed["loss"]


def test_whoever_failed_is_asked_again_when_the_deadline_is_over(tmp_path: Path) -> None:
    tries: list[int] = []

    def mended(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        tries.append(node)
        return (faulty(2) if len(tries) <= 3 else after(1.0))(grid, node, message)

    (record,) = run(tmp_path, dict.fromkeys((0, 1, 2), mended), "rounds=1")
    assert record["counted"] == [0, 1, 2, 3] and len(tries) == 6
    assert 20 <= record["seconds"] < 40


def test_a_ballot_that_comes_after_the_next_broadcast_is_refused(tmp_path: Path) -> None:
    first, second, third = run(tmp_path, {2: in_round(1, after(1.5))}, "flower.quorum=0.75")
    assert first["counted"] == [0, 1, 3] and first["failed"] == {2: "no answer before the round closed"}
    assert second["late"] == {2: "round 1: a ballot, refused: the round is over"}
    assert second["returned"] == [2] and "late" not in third


def test_the_quorum_closes_a_round_before_the_deadline(tmp_path: Path) -> None:
    patient = run(tmp_path / "patient", {2: after(15)}, "rounds=1")
    hasty = run(tmp_path / "hasty", {2: after(15)}, "rounds=1", "flower.quorum=0.75")
    assert patient[0]["counted"] == [0, 1, 2, 3] and patient[0]["seconds"] > 14
    assert hasty[0]["counted"] == [0, 1, 3] and hasty[0]["seconds"] < 5


def test_the_deadline_closes_a_round_with_the_minimum(tmp_path: Path) -> None:
    (record,) = run(tmp_path, {2: silent, 3: silent}, "rounds=1")
    assert record["counted"] == [0, 1] and 20 <= record["seconds"] < 25


def test_without_a_minimum_the_run_waits_says_for_whom_and_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behave = {1: in_round(2, silent), 2: in_round(2, faulty(2)), 3: in_round(2, silent)}
    with pytest.raises(NoQuorum, match="1 of the 2 ballots") as stop:
        run(tmp_path, behave)
    assert "1 (it did not answer yet)" in str(stop.value) and "2 (its code raised" in str(stop.value)
    assert "Round 1 is safe" in str(stop.value)
    assert "round 2 has 1 of the 2 ballots it needs" in capsys.readouterr().err
    assert [record["round"] for record in RunFolder(tmp_path).metrics()] == [1]


def test_a_run_that_waits_goes_on_when_clients_come_back(tmp_path: Path) -> None:
    grid = grid_of(4)
    gone = {number(grid, client): grid.nodes[number(grid, client)] for client in (1, 2, 3)}
    grid.nodes = {node: key for node, key in grid.nodes.items() if node not in gone}
    grid.plans.append((60.0, lambda: grid.nodes.update(gone)))
    (record,) = elected(small(*PATIENT, "rounds=1"), grid, tmp_path)
    assert record["seconds"] > 35 and record["counted"] == [0, 1, 2, 3] and "absent" not in record


def test_a_node_that_died_and_is_back_is_asked_again_in_the_same_round(tmp_path: Path) -> None:
    grid = grid_of(4)
    records = run(tmp_path, {1: once(2, faulty(5))}, grid=grid)
    assert [record["counted"] for record in records] == [[0, 1, 2, 3]] * 3
    assert len(grid.sent) == 3 * 4 + 1


def test_a_client_that_was_away_is_said_to_be_back_once(tmp_path: Path) -> None:
    records = run(tmp_path, {2: in_round(2, silent)}, "rounds=5")
    assert [record.get("returned") for record in records] == [None, None, [2], None, None]


def test_a_client_that_was_away_twice_is_said_to_be_back_twice(tmp_path: Path) -> None:
    records = run(tmp_path, {2: in_round(1, silent, in_round(3, silent))}, "rounds=5")
    assert [record.get("returned") for record in records] == [None, [2], None, [2], None]


def test_a_client_that_was_away_before_the_server_was_started_again_is_said_to_be_back_once(tmp_path: Path) -> None:
    run(tmp_path, {2: silent}, "rounds=1")
    records = run(tmp_path, {}, "rounds=3")
    assert [record.get("returned") for record in records] == [[2], None]


def test_who_is_not_there_is_absent_and_does_not_hold_up_a_round(tmp_path: Path) -> None:
    grid = grid_of(4)
    run = elect(small(*PATIENT), grid, tmp_path)
    next(run)
    key = grid.nodes.pop(number(grid, 2))
    grid.sleep(10)
    second = next(run).record
    grid.nodes[777] = key
    grid.sleep(10)
    third = next(run).record
    assert second["absent"] == [2] and second["counted"] == [0, 1, 3] and second["seconds"] < 5
    assert third["returned"] == [2] and third["counted"] == [0, 1, 2, 3]
