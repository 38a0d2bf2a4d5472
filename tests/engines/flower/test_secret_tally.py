"""A secure tally over Flower: the simulator's bits, whoever is lost at whichever message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from flwr.app import Message

from fedvote.engines.flower.replies import Refusal
from fedvote.engines.flower.secret_tally import NoKeys
from fedvote.engines.flower.tasks import read_task
from fedvote.errors import ConfigError
from tests.engines.flower.grid import (
    Behaviour,
    FakeGrid,
    Reply,
    after,
    elect,
    grid_of,
    honest,
    in_the_simulator,
    number,
    refuses,
    silent,
    small,
)
from tests.engines.flower.messages import PROBLEM
from tests.engines.flower.secret_rounds import RULES, SECURE, kind_of
from tests.toy import assert_same

METHODS = {
    "binary": (),
    "plain ternary": ("method.votes=ternary", "method.coding=plain"),
    "fixed point": ("method=fedavg", "method.clip=0.05"),
    "hostile": ("federation.hostile=2", "attack=inverse"),
    "levels": ("method.levels=5", "method.level_rounding=carry", "method.counts=changes"),
}


@pytest.mark.parametrize("settings", METHODS.values(), ids=list(METHODS))
def test_both_engines_agree_to_the_bit_and_the_byte(settings: tuple[str, ...], tmp_path: Path) -> None:
    config = small(*SECURE, *RULES, *settings)
    for a, b in zip(in_the_simulator(config), elect(config, grid_of(4), tmp_path), strict=True):
        assert_same(a.state, b.state)
        for name in a.record.keys() - {"seconds", "seconds_training"}:
            assert a.record[name] == b.record[name], name


def lost(kind: str, in_rounds: tuple[int, ...], then: Behaviour = silent) -> Behaviour:
    """A node that does not answer one kind of message in these rounds."""

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        affected = kind_of(message) == kind and int(message.metadata.group_id) in in_rounds
        return (then if affected else honest)(grid, node, message)

    return behave


def in_the_clear(folder: Path, voters: dict[int, list[int]], clients: int = 4) -> list[Any]:
    """The same run without a secure tally, in which only these clients vote, by round."""
    grid = grid_of(clients)

    def vote(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        chosen = voters.get(int(message.metadata.group_id), range(clients))
        behave = honest if read_task(message, PROBLEM).client in chosen else silent
        return behave(grid, node, message)

    grid.behave = dict.fromkeys(grid.nodes, vote)
    settings = [setting for setting in SECURE if not setting.startswith("secure")]
    return list(elect(small(*settings, *RULES, f"federation.clients={clients}"), grid, folder))


@pytest.mark.parametrize("kind", ["key", "ballot", "shares"])
def test_with_a_client_lost_at_any_message_the_state_is_that_of_the_voters(kind: str, tmp_path: Path) -> None:
    grid = grid_of(4)
    grid.behave = {number(grid, 1): lost(kind, (1,))}
    masked = list(elect(small(*SECURE, *RULES), grid, tmp_path / "secure"))
    missing = {"shares": {}}.get(kind, {1: [0, 2, 3]})
    clear = in_the_clear(tmp_path / "clear", missing)
    for a, b in zip(masked, clear, strict=True):
        assert_same(a.state, b.state)
        assert a.record["counted"] == b.record["counted"]
    assert masked[1].record["counted"] == list(range(4))


def test_of_six_one_is_lost_before_its_ballot_and_one_after_it(tmp_path: Path) -> None:
    settings, grid = (*SECURE, *RULES, "federation.clients=6", "rounds=2"), grid_of(6)
    grid.behave = {number(grid, 1): lost("ballot", (2,)), number(grid, 4): lost("shares", (2,))}
    masked = list(elect(small(*settings), grid, tmp_path / "secure"))
    clear = in_the_clear(tmp_path / "clear", {2: [0, 2, 3, 4, 5]}, 6)
    for a, b in zip(masked, clear, strict=False):
        assert_same(a.state, b.state)


def test_without_enough_helpers_nobody_counts_and_the_run_goes_on(tmp_path: Path) -> None:
    grid = grid_of(4)
    grid.behave = {number(grid, client): lost("shares", (2,)) for client in range(3)}
    first, second, third = elect(small(*SECURE, *RULES, "rounds=3"), grid, tmp_path)
    assert torch.equal(first.state["level"], second.state["level"])
    assert second.record["counted"] == [] and "masks cannot be removed" in second.record["refused"][0]
    assert third.record["counted"] == list(range(4))
    assert not torch.equal(third.state["level"], second.state["level"])


def test_a_ballot_after_the_list_of_voters_is_no_fault_of_its_client(tmp_path: Path) -> None:
    grid = grid_of(4)

    def slow(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        return after(1.5 if kind_of(message) == "ballot" else 1.0)(grid, node, message)

    grid.behave = {number(grid, 3): slow}
    for snapshot in elect(small(*SECURE, *RULES, "flower.quorum=0.75"), grid, tmp_path):
        assert snapshot.record["counted"] == [0, 1, 2] and "refused" not in snapshot.record
        assert snapshot.record["failed"] == {3: "its ballot came after the list of voters was fixed"}


def test_a_refused_answer_is_not_asked_for_for_ever(tmp_path: Path) -> None:
    grid = grid_of(4)
    grid.behave = {number(grid, 0): lost("shares", (1,), refuses(Refusal("failed", "WireError")))}
    assert [snapshot.record["counted"] for snapshot in elect(small(*SECURE, *RULES), grid, tmp_path)] == [
        list(range(4))
    ] * 2


def test_a_client_that_lost_its_key_misses_a_round_and_takes_part_again(tmp_path: Path) -> None:
    grid = grid_of(4)

    def forgets(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        if kind_of(message) == "ballot" and message.metadata.group_id == "2":
            grid.contexts.pop(node)
        return honest(grid, node, message)

    grid.behave = {number(grid, 3): forgets}
    records = [snapshot.record for snapshot in elect(small(*SECURE, *RULES, "rounds=3"), grid, tmp_path)]
    assert [record["counted"] for record in records] == [list(range(4)), [0, 1, 2], list(range(4))]


def test_a_restarted_server_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    config, grid = small(*SECURE, *RULES), grid_of(4)
    whole = list(elect(config, grid_of(4), tmp_path / "whole"))
    run = elect(config, grid, tmp_path / "killed")
    next(run)
    grid.dies = True  # in the middle of round 2
    with pytest.raises(KeyboardInterrupt):
        next(run)
    grid.dies = False
    resumed = list(elect(config, grid, tmp_path / "killed"))
    assert [snapshot.round for snapshot in resumed] == [2]
    assert_same(resumed[-1].state, whole[-1].state)


def test_too_few_keys_end_the_run_with_a_reason(tmp_path: Path) -> None:
    grid = grid_of(4)
    grid.behave = {number(grid, client): lost("key", (1,)) for client in range(2)}
    with pytest.raises(NoKeys, match="round 1 has keys of 2 clients, expected 3 or more"):
        list(elect(small(*SECURE, *RULES), grid, tmp_path))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (("secure.count_only=true",), "for the simulator alone"),
        (("method.counts=changes", "secure.rounding=auto"), "or secure.rounding = seed"),
        (("flower.late_rounds=1",), "late_rounds = 0"),
    ],
)
def test_what_makes_no_sense_between_machines_is_refused(
    settings: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        list(elect(small(*SECURE, *RULES, *settings), grid_of(4), tmp_path))
