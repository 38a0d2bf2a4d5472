"""Clients that die, hang, raise or say odd things: the round goes on without them, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Array, ConfigRecord, Error, Message, RecordDict

from fedvote.engines.flower.replies import Refusal
from fedvote.engines.flower.roster import identity
from fedvote.engines.flower.server import NoQuorum
from fedvote.errors import ConfigError
from fedvote.runs.experiment import federation
from fedvote.runs.folder import RunFolder
from tests.engines.flower.grid import (
    Behaviour,
    FakeGrid,
    Reply,
    alter,
    elect,
    faulty,
    flip,
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


def test_a_failure_is_attributed_by_the_message_and_not_by_its_sender(tmp_path: Path) -> None:
    def from_flower(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        ((seconds, reply),) = faulty(5)(grid, node, message)
        reply.metadata.__dict__["_src_node_id"] = 1
        return [(seconds, reply)]

    _, second, _ = run(tmp_path, {3: in_round(2, from_flower)})
    assert list(second["failed"]) == [3] and second["counted"] == [0, 1, 2]


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


def test_whoever_a_round_waits_for_is_said_by_name(tmp_path: Path) -> None:
    grid = grid_of(4)
    allowed = {identity(node): f"hospital {node.node_id}" for node in grid.get_nodes()}
    missing = number(grid, 1)
    grid.behave = {missing: silent}
    with pytest.raises(NoQuorum, match=rf"missing: {missing - 100} hospital {missing} \("):
        list(
            elect(
                small("rounds=1", "flower.minimum=1", "flower.deadline=5", "flower.patience=10"),
                grid,
                tmp_path,
                allowed,
            )
        )


def test_the_roster_is_written_when_the_server_starts_in_the_order_of_names(tmp_path: Path) -> None:
    grid = grid_of(4)
    allowed = {identity(node): f"hospital {node.node_id}" for node in grid.get_nodes()}
    list(elect(small("rounds=1"), grid, tmp_path, allowed))
    lines = json.loads((tmp_path / "roster.json").read_text())
    assert {line.partition(" ")[2]: client for line, client in lines.items()} == {
        f"hospital {100 + client}": client for client in range(4)
    }


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
