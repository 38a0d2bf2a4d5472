"""The voters of a secure tally: nothing in the clear, no weaker tally than they demand, and keys that others accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, derive_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import ConfigRecord, Message

from fedvote.engines.flower.replies import Ballot, reply_message
from fedvote.engines.flower.roster import identity_of
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
    small,
)
from tests.engines.flower.messages import PROBLEM
from tests.engines.flower.secret_rounds import RULES, SECURE, kind_of


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
