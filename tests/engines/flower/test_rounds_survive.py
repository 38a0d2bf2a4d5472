"""Clients that die, hang, raise, send garbage, answer late or twice, or come back: the round goes on and says so."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from fedvote.config import Config
from fedvote.core import ConfigError
from fedvote.engines.flower.messages import answer, read_answer
from fedvote.engines.flower.poll import TRIES, NoQuorum
from fedvote.engines.flower.roster import identity
from fedvote.engines.flower.server import time_to_live
from fedvote.evaluate import judge
from fedvote.experiment import run as resume_here
from fedvote.experiment import simulation
from fedvote.folder import RunFolder
from tests.engines.flower.grid import (
    PATIENT,
    Behaviour,
    FakeGrid,
    Reply,
    after,
    elect,
    faulty,
    grid_of,
    in_round,
    number,
    run,
    silent,
    small,
)
from tests.toy import assert_same


def alter(change: Any) -> Behaviour:
    """A node whose frame is changed on the way."""

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        frame = read_answer(grid.turn(node, message))
        return [(1.0, answer(change(frame), message))]

    return behave


def flip(frame: bytes) -> bytes:
    return frame[:-9] + bytes([frame[-9] ^ 1]) + frame[-8:]


@pytest.mark.parametrize(
    ("behave", "why"),
    [
        (faulty(2), "its code raised"),
        (faulty(5), "its node went away"),
        (faulty(8), "its process died"),
        (silent, "no answer before the round closed"),
    ],
    ids=["raises", "node dies", "process dies", "hangs"],
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


def test_what_is_not_the_clients_fault_stops_the_server(tmp_path: Path) -> None:
    grid = grid_of(4)

    def gone() -> None:
        raise httpx.ConnectError("no SuperLink")

    grid.pulls[number(grid, 2)] = gone
    with pytest.raises(httpx.ConnectError):
        run(tmp_path, {}, grid=grid)


def test_a_reply_that_is_announced_and_never_comes_holds_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedvote.engines.flower.post.LONG", 0.1)
    grid, never = grid_of(4), threading.Event()
    grid.pulls[number(grid, 2)] = never.wait
    try:
        records = run(tmp_path, {}, "rounds=2", grid=grid)
    finally:
        never.set()
    assert [record["counted"] for record in records] == [[0, 1, 3]] * 2
    assert records[0]["failed"] == {2: "no answer before the round closed"}
    assert records[0]["seconds"] < 25  # the deadline is 20


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
    with pytest.raises(NoQuorum, match=r"has 1 of the 2 ballots.*those who were refused had their vote after [0-9] s"):
        run(tmp_path, {c: alter(flip) for c in (0, 1, 2)}, grid=grid)


def test_a_run_that_began_over_a_network_goes_on_in_the_simulator(tmp_path: Path) -> None:
    """What clients remember stayed with them: they begin anew."""
    config = small("rounds=1", "method=signum")
    list(elect(config, grid_of(4), tmp_path))
    last = list(resume_here(replace(config, rounds=2), RunFolder(tmp_path), device="cpu", resume=True))[-1]
    assert last.round == 2 and last.record["clients"] == [0, 1, 2, 3] and last.memory


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
        kept.append(read_answer(grid.turn(node, message)))
        return [(1.0, answer(kept[0], message))]

    first, second, _ = run(tmp_path, {0: replay})
    assert first["counted"] == [0, 1, 2, 3] and second["counted"] == [1, 2, 3]
    assert "round 1, expected 2" in second["refused"][0]


def test_a_ballot_of_another_client_is_refused(tmp_path: Path) -> None:
    stolen: list[bytes] = []

    def honest_but_overheard(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        stolen.append(read_answer(grid.turn(node, message)))
        return [(1.0, answer(stolen[0], message))]

    def thief(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return [(1.0, answer(stolen[0], message))]

    first, *_ = run(tmp_path, {0: honest_but_overheard, 1: thief}, "rounds=1")
    assert first["counted"] == [0, 2, 3] and "client 0, expected 1" in first["refused"][1]


def test_anything_but_one_frame_is_refused(tmp_path: Path) -> None:
    def chatty(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        extra = RecordDict({"ballot": ConfigRecord({"frame": b"", "name": "Ada"})})
        return [(1.0, Message(extra, reply_to=message))]

    first, *_ = run(tmp_path, {1: chatty}, "rounds=1")
    assert first["counted"] == [0, 2, 3] and "expected one frame" in first["refused"][1]


def test_one_node_has_one_vote_a_round(tmp_path: Path) -> None:
    def twice(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        return [(1.0, reply), (1.0, answer(read_answer(reply), message))]

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

    def names(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return [(1.0, Message(RecordDict({"B" * 1_000_000: ConfigRecord({"c": 1})}), reply_to=message))]

    (record,) = run(tmp_path, {0: raises, 1: names}, "rounds=1")
    assert record["counted"] == [2, 3]
    assert len(record["failed"][0]) < 300 and len(record["refused"][1]) < 300
    assert RunFolder(tmp_path).metrics_file.stat().st_size < 10_000


def test_whoever_failed_is_asked_again_when_the_deadline_is_over(tmp_path: Path) -> None:
    tries: list[int] = []

    def mended(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        tries.append(node)
        return (faulty(2) if len(tries) <= 3 else after(1.0))(grid, node, message)

    (record,) = run(tmp_path, dict.fromkeys((0, 1, 2), mended), "rounds=1")
    assert record["counted"] == [0, 1, 2, 3] and len(tries) == 6
    assert 20 <= record["seconds"] < 40


def elected(config: Config, grid: FakeGrid, folder: Path) -> list[Any]:
    return [snapshot.record for snapshot in elect(config, grid, folder)]


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


def test_a_server_killed_between_rounds_ends_with_the_bits_of_one_that_was_not(tmp_path: Path) -> None:
    config = small("method.reputation=proportional", "rounds=4")
    whole = list(elect(config, grid_of(4), tmp_path / "whole"))
    run = elect(config, grid_of(4), tmp_path / "killed")
    next(run), next(run)
    run.close()
    rest = list(elect(config, grid_of(4), tmp_path / "killed"))
    assert [snapshot.round for snapshot in rest] == [3, 4]
    assert_same(whole[-1].state, rest[-1].state)
    assert any(name.startswith("reputation/") for name in rest[-1].state)
    assert [record["round"] for record in RunFolder(tmp_path / "killed").metrics()] == [1, 2, 3, 4]


@pytest.mark.parametrize("after_turns", [False, True], ids=["between rounds", "within a round"])
def test_clients_that_remember_on_disk_end_with_the_bits_of_a_run_that_was_not_killed(
    after_turns: bool, tmp_path: Path
) -> None:
    """Killed within a round, the clients have taken their turn, and take the same turn again."""
    config = small("method=signum", "rounds=3")
    whole = list(elect(config, grid_of(4), tmp_path / "whole"))

    def grid() -> FakeGrid:
        made = grid_of(4)
        made.node_config = {"memory": str(tmp_path / "memory")}
        return made

    first = grid()
    run = elect(config, first, tmp_path / "killed")
    next(run)
    if after_turns:
        first.dies = True
        with pytest.raises(KeyboardInterrupt):
            next(run)
        assert len(first.sent) == 8
    run.close()
    rest = list(elect(config, grid(), tmp_path / "killed"))
    assert [snapshot.round for snapshot in rest] == [2, 3]
    assert_same(whole[-1].state, rest[-1].state)
    assert len(list((tmp_path / "memory").iterdir())) == 4


def test_a_client_that_is_asked_for_a_round_again_takes_the_same_turn_again(tmp_path: Path) -> None:
    frames: list[bytes] = []

    def twice(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        frames.extend([read_answer(reply), read_answer(grid.turn(node, message))])
        return [(1.0, reply)]

    run(tmp_path, {0: twice}, "method=signum", "method.beta=0.5")
    assert len(frames) == 6 and frames[::2] == frames[1::2]


def test_reputations_stay_with_the_key_when_nodes_get_new_ids(tmp_path: Path) -> None:
    config = small("rounds=2")
    run = elect(config, grid_of(4), tmp_path)
    next(run)
    run.close()
    grid = grid_of(4)
    grid.nodes = {900 - node: key for node, key in grid.nodes.items()}
    list(elect(config, grid, tmp_path))
    asked = {m.metadata.dst_node_id: m.content.config_records["task"]["client"] for m in grid.sent}
    before = grid_of(4)
    assert {900 - number(before, client): client for client in range(4)} == asked


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
    allowed = frozenset(identity(node) for node in grid.get_nodes() if node.node_id != 102)
    (snapshot,) = elect(small(*PATIENT, "rounds=1"), grid, tmp_path, allowed)
    assert len(snapshot.record["counted"]) == 3 and len(snapshot.record["turned_away"]) == 1
    assert 102 not in {message.metadata.dst_node_id for message in grid.sent}


def test_attacks_that_need_to_see_others_are_refused_before_round_1(tmp_path: Path) -> None:
    config = small("federation.hostile=1", "attack=omniscient")
    with pytest.raises(ConfigError, match="different machines"):
        next(elect(config, grid_of(4), tmp_path))
    assert simulation(config, "cpu").attack.omniscient


def test_the_text_of_an_error_does_not_leave_the_client(tmp_path: Path) -> None:
    grid = grid_of(1)
    grid.behave = {100: lambda grid, node, message: [(1.0, grid.turn(node, message))]}
    config = small("federation.clients=1", "rounds=1", "flower.deadline=2", "flower.patience=4")

    def secret(*_: Any) -> bytes:
        raise ValueError("patient 4711 has a missing value")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedvote.engines.flower.client_app.take_turn", secret)
        with pytest.raises(Exception, match="ValueError, see the log") as stop:
            list(elect(config, grid, tmp_path))
    assert "4711" not in str(stop.value)
