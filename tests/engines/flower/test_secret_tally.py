"""A secure tally over Flower: the simulator's bits, whoever is lost at whichever message, and nothing in the clear."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, derive_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import ConfigRecord, Message, MessageType

from fedvote.engines.flower.replies import Ballot, Refusal, reply_message
from fedvote.engines.flower.roster import identity_of
from fedvote.engines.flower.secret_tally import NoKeys
from fedvote.engines.flower.server import NoQuorum
from fedvote.engines.flower.tasks import read_task
from fedvote.engines.flower.voter import check_demand
from fedvote.errors import ConfigError
from fedvote.secure import InTheClear, Secrecy, SecureTally
from fedvote.secure.signed_keys import read_key, signed_key
from tests.engines.flower.grid import (
    Behaviour,
    FakeGrid,
    Reply,
    elect,
    frame_of,
    grid_of,
    honest,
    number,
    refuses,
    silent,
    small,
)
from tests.engines.flower.test_agreement import in_the_simulator
from tests.engines.flower.test_tasks import PROBLEM
from tests.toy import assert_same

SECURE = ("secure.name=tally", "secure.rounding=seed", "rounds=2")
RULES = ("flower.deadline=30", "flower.patience=200", "flower.minimum=0.5", "flower.grace=5")
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


def kind_of(message: Message) -> str:
    """Which of the three messages of a round it is."""
    if message.metadata.message_type == MessageType.TRAIN:
        return "ballot"
    return "shares" if read_task(message, PROBLEM).broadcast else "key"


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


def test_the_server_is_sent_no_ballot_and_no_secret_in_the_clear(tmp_path: Path) -> None:
    """By default clients round by numbers that the server does not know, and no two of their messages agree."""
    grid, frames = grid_of(4), []

    def watched(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        replies = honest(grid, node, message)
        if kind_of(message) == "ballot":
            assert read_task(message, PROBLEM).secret == b""
            again = grid.turn(node, message)
            frames.append((frame_of(replies[0][1]), frame_of(again)))
        return replies

    grid.behave = dict.fromkeys(grid.nodes, watched)
    settings = [setting for setting in SECURE if "rounding" not in setting]
    list(elect(small(*settings, *RULES), grid, tmp_path))
    assert len(frames) == 8
    for one, other in frames:
        assert one[:4] == b"FVST" and len(one) == len(other)
        differing = sum(a != b for a, b in zip(one[30:], other[30:], strict=True)) / len(one)
        assert differing > 0.98  # of random bytes 255 in 256 differ


def test_a_client_with_the_rosters_keys_refuses_unsigned_ones(tmp_path: Path) -> None:
    from fedvote.engines.flower.certificates import make_key

    (tmp_path / "keys").mkdir()
    make_key(tmp_path / "keys" / "somebody")
    grid = grid_of(4)
    grid.node_config = {"keys": str(tmp_path / "keys")}
    with pytest.raises(Exception, match="ballots it needs"):
        list(elect(small(*SECURE, *RULES), grid, tmp_path / "run"))


def told(what: str) -> Behaviour:
    """A node that a lying server tells another configuration than all others."""

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        if kind_of(message) == "ballot":
            about = dict(grid.contexts[node].state.config_records["problem"])
            message.content["problem"] = ConfigRecord({**about, "experiment": str(about["experiment"]) + what})
        return honest(grid, node, message)

    return behave


def test_a_client_that_is_told_another_configuration_does_not_vote(tmp_path: Path) -> None:
    """Its masks would be others: the server learns nothing from what others would have sent."""
    grid = grid_of(4)
    grid.behave = {number(grid, 2): told("\n# a remark")}
    records = [snapshot.record for snapshot in elect(small(*SECURE, *RULES, "rounds=1"), grid, tmp_path)]
    assert records[0]["counted"] == [0, 1, 3] and "WireError" in records[0]["failed"][2]


@pytest.mark.parametrize(
    ("tally", "secure", "problem"),
    [
        (4, SecureTally(), "unmasks tallies of 3: it needs secure.minimum = 4"),
        (2, InTheClear(), "sees every ballot: it needs secure.name = tally"),
        (2, SecureTally(rounding="seed"), "weakens the tally"),
        (2, SecureTally(threshold=0.4), "weakens the tally"),
        (2, SecureTally(neighbours=2), "weakens the tally"),
        (1, SecureTally(), "tally in the node's configuration is 1, expected a number of ballots"),
        ("many", SecureTally(), "is 'many', expected a number of ballots"),
    ],
)
def test_a_node_votes_in_no_weaker_tally_than_it_demands(tally: Any, secure: Secrecy, problem: str) -> None:
    check_demand({"tally": 3}, SecureTally(minimum=4))
    check_demand({}, InTheClear())
    with pytest.raises(ConfigError, match=problem):
        check_demand({"tally": tally}, secure)


def test_nodes_that_demand_a_secure_tally_send_no_ballot_in_the_clear(tmp_path: Path) -> None:
    grid = grid_of(4)
    grid.node_config = {"tally": 3}
    with pytest.raises(NoQuorum, match=r"round 1 has 0 of the 2 ballots it needs.*ConfigError"):
        list(elect(small(*RULES), grid, tmp_path))


def run_of(message: Message) -> str:
    """The run's name, in a client's first message."""
    return str(message.content.config_records["problem"]["run"])


def with_keys(clients: int) -> FakeGrid:
    """Nodes with keys of the roster, as Flower has them."""
    form = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    publics = (derive_private_key(1 + number, SECP384R1()).public_key() for number in range(clients))
    return FakeGrid({100 + number: public.public_bytes(*form) for number, public in enumerate(publics)})


BAD_KEYS: dict[str, Callable[[str, list[bytes]], bytes]] = {
    "everybody's secret": lambda run, seen: signed_key(run, 1, bytes(32)),
    "client 0's": lambda run, seen: signed_key(run, 1, read_key(seen[0], 0).public),
    "signed by a stranger": lambda run, seen: signed_key(
        run, 1, read_key(seen[1], 1).public, "key:x", derive_private_key(99, SECP384R1())
    ),
}


@pytest.mark.parametrize("bad", BAD_KEYS.values(), ids=list(BAD_KEYS))
def test_a_key_that_others_would_refuse_costs_its_client_the_round_and_nobody_else(
    bad: Callable[[str, list[bytes]], bytes], tmp_path: Path
) -> None:
    grid, seen = with_keys(4), list[bytes]()

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        replies, task = honest(grid, node, message), read_task(message, PROBLEM)
        if kind_of(message) != "key":
            return replies
        seen.append(frame_of(replies[0][1]))
        frame = bad(run_of(message), seen) if task.client == 1 else seen[-1]
        return [(1.0, reply_message(Ballot(frame), message))]

    grid.behave = dict.fromkeys(grid.nodes, behave)
    record = next(elect(small(*SECURE, *RULES, "rounds=1"), grid, tmp_path)).record
    assert record["counted"] == [0, 2, 3]
    assert record["failed"] == {1: "it sent no key for the secure tally"}


def test_where_others_sign_a_key_that_is_not_signed_costs_its_client_the_round(tmp_path: Path) -> None:
    grid = with_keys(4)

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        replies, task = honest(grid, node, message), read_task(message, PROBLEM)
        if kind_of(message) != "key" or task.client == 2:
            return replies
        by = derive_private_key(node - 99, SECP384R1())
        public = read_key(frame_of(replies[0][1]), task.client).public
        frame = signed_key(run_of(message), task.client, public, identity_of(by.public_key()), by)
        return [(1.0, reply_message(Ballot(frame), message))]

    grid.behave = dict.fromkeys(grid.nodes, behave)
    record = next(elect(small(*SECURE, *RULES, "rounds=1"), grid, tmp_path)).record
    assert record["counted"] == [0, 1, 3]
    assert record["failed"] == {2: "its key for the secure tally is not signed"}


def test_a_clients_key_and_lists_are_its_owners_alone(tmp_path: Path) -> None:
    grid, memory = grid_of(4), tmp_path / "memory"
    grid.node_config = {"memory": str(memory)}
    list(elect(small(*SECURE, *RULES, "rounds=2"), grid, tmp_path / "run"))
    files = sorted(memory.glob("*.secure.json"))
    assert len(files) == 4 and all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert all(json.loads(json.loads(file.read_text())["answered"])["round"] == 2 for file in files)


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
