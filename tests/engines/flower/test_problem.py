"""The configuration travels to each client once; a client that is new, or has lost it, gets the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from fedvote.engines.flower.problem import DIGEST, digest_of, problem_record, receive_problem
from fedvote.engines.flower.replies import Refusal, read_reply
from fedvote.errors import NoProblemError
from tests.engines.flower.grid import FakeGrid, Reply, elect, grid_of, in_round, number, refuses, run, small
from tests.engines.flower.messages import PROBLEM


def configurations(grid: FakeGrid) -> list[tuple[str, int, bool]]:
    """Of every message sent: its round, its node, and whether it has the whole configuration."""
    return [
        (m.metadata.group_id, m.metadata.dst_node_id, list(m.content.config_records["problem"]) != [DIGEST])
        for m in grid.sent
    ]


def test_the_configuration_is_sent_once_and_its_bytes_are_saved(tmp_path: Path) -> None:
    grid = grid_of(4)
    records = run(tmp_path, {}, grid=grid)
    assert all(whole == (round == "1") for round, _, whole in configurations(grid))
    whole, short = (len(grid.sent[n].content.config_records["problem"].deflate()) for n in (0, 4))
    around = [r["downlink_message_bytes"] - r["downlink_bytes"] for r in records]
    assert whole > 10 * short and around[0] - around[1] == pytest.approx(4 * (whole - short), abs=4 * 8)
    assert around[1] == pytest.approx(around[2], abs=4 * 8)


def test_a_client_that_joins_late_gets_the_whole(tmp_path: Path) -> None:
    grid = grid_of(4)
    newcomer, key = number(grid, 3), grid.nodes[number(grid, 3)]
    rounds = elect(small("flower.minimum=0.5", "flower.deadline=20", "flower.grace=2"), grid, tmp_path)
    del grid.nodes[newcomer]
    assert len(next(rounds).record["counted"]) == 3
    grid.nodes[newcomer], grid.now = key, grid.now + 5
    assert [len(snapshot.record["counted"]) for snapshot in rounds] == [4, 4]
    assert [(round, node) for round, node, whole in configurations(grid) if whole and round != "1"] == [("2", newcomer)]


def test_a_client_that_lost_it_gets_the_whole_in_the_same_round(tmp_path: Path) -> None:
    def forgetful(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        if not (again := sum(m.metadata.dst_node_id == node for m in grid.sent) > 2):
            del grid.contexts[node]  # the last broadcast is lost as well
        reply = grid.turn(node, message)
        assert again or read_reply(reply) == Refusal("no-problem")
        return [(1.0, reply)]

    grid = grid_of(4)
    records = run(tmp_path / "forgetful", {1: in_round(2, forgetful)}, grid=grid)
    sent = [whole for _, node, whole in configurations(grid) if node == number(grid, 1)]
    assert len(grid.sent) == 3 * 4 + 1 and sent == [True, False, True, False]
    for forgot, plain in zip(records, run(tmp_path / "plain", {}), strict=True):
        assert forgot["counted"] == [0, 1, 2, 3] and "failed" not in forgot and forgot["loss"] == plain["loss"]


def test_who_says_for_ever_that_it_lacks_it_loses_its_own_vote_alone(tmp_path: Path) -> None:
    grid = grid_of(4)
    for record in run(tmp_path, {2: refuses(Refusal("no-problem"))}, grid=grid):
        assert record["counted"] == [0, 1, 3]
        assert record["failed"][2] == "it does not have the configuration that its task refers to"
    assert all(whole for _, node, whole in configurations(grid) if node == number(grid, 2))


def test_clients_of_a_restarted_server_get_the_whole(tmp_path: Path) -> None:
    first = elect(small(), grid_of(4), tmp_path)
    next(first)
    first.close()
    list(elect(small(), grid := grid_of(4), tmp_path))
    assert [round for round, _, whole in configurations(grid) if whole] == ["2"] * 4


def test_only_the_configuration_with_this_digest_will_do() -> None:
    state, other = RecordDict(), replace(PROBLEM, experiment="rounds = 4\n")
    assert receive_problem(RecordDict({"problem": problem_record(PROBLEM)}), state) == PROBLEM
    short = RecordDict({"problem": problem_record(PROBLEM, whole=False)})
    assert receive_problem(short, state) == PROBLEM
    for held in (RecordDict(), RecordDict({"problem": problem_record(other)}), RecordDict({"problem": ConfigRecord()})):
        with pytest.raises(NoProblemError):
            receive_problem(short, held)
    assert digest_of(problem_record(PROBLEM)) == short["problem"][DIGEST] and len(str(short["problem"][DIGEST])) == 32
