"""Numbers belong to keys: they stay over restarts, nobody gets two, and whoever comes too late has none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from fedvote.engines.flower.certificates import make_key
from fedvote.engines.flower.roster import Roster, identity, identity_in, keys_in, load_roster, save_roster
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Node:
    node_id: int
    public_key: bytes = b""


A, B, C = Node(1, b"a"), Node(2, b"b"), Node(3, b"c")


def test_a_node_keeps_its_number_whoever_comes_or_goes() -> None:
    roster = Roster(3).enrol([A, B])
    numbers = roster.present([A, B])
    later = roster.enrol([C]).enrol([A, C])
    assert later.present([A, B, C]) == {**numbers, 2: 3}
    assert later.present([Node(77, b"a")]) == {client: 77 for client, node in numbers.items() if node == 1}


def test_whoever_comes_when_all_numbers_are_given_has_none() -> None:
    roster = Roster(2).enrol([A, B]).enrol([C])
    assert sorted(roster.numbers.values()) == [0, 1]
    assert roster.strangers([A, B, C]) == [identity(C)]


def test_a_newcomer_has_a_number_that_nobody_has() -> None:
    roster = Roster(4, {identity(A): 0, identity(B): 2}).enrol([C])
    assert roster.numbers == {identity(A): 0, identity(B): 2, identity(C): 1}


def test_two_nodes_with_one_key_are_one_client() -> None:
    roster = Roster(3).enrol([A, Node(9, b"a")])
    assert len(roster.numbers) == 1


def test_keys_are_remembered_and_ids_are_not(tmp_path: Path) -> None:
    roster = Roster(3).enrol([A, B, Node(5)])
    save_roster(tmp_path, roster)
    again = load_roster(tmp_path, 3)
    assert again.present([A, B]) == roster.present([A, B])
    assert sorted(again.enrol([Node(6)]).numbers.values()) == [0, 1, 2]


def test_only_keys_in_the_folder_get_a_number(tmp_path: Path) -> None:
    known, stranger = (load_ssh_public_key(make_key(tmp_path / where).read_bytes()) for where in ("keys/a", "other/b"))
    nodes = [
        Node(number, key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        for number, key in enumerate((known, stranger))
    ]
    roster = load_roster(tmp_path, 2, keys_in(tmp_path / "keys")).enrol(nodes)
    assert roster.present(nodes) == {0: 0} and roster.strangers(nodes) == [identity(nodes[1])]
    save_roster(tmp_path, Roster(2).enrol(nodes))
    assert load_roster(tmp_path, 2, keys_in(tmp_path / "keys")).present(nodes).keys() < {0, 1}
    with pytest.raises(ConfigError, match="holds no public keys"):
        keys_in(tmp_path)


def test_the_roster_has_the_names_of_public_keys_beside_what_nodes_are_known_by(tmp_path: Path) -> None:
    files = [make_key(tmp_path / "keys" / name) for name in ("north", "south wing")]
    nodes = [Node(number, pem(file)) for number, file in enumerate(files)]
    roster = load_roster(tmp_path, 2, keys_in(tmp_path / "keys")).enrol(nodes)
    save_roster(tmp_path, roster)
    written = json.loads((tmp_path / "roster.json").read_text())
    assert written == {
        f"{identity_in(file)} {file.stem}": roster.numbers[identity(node)]
        for file, node in zip(files, nodes, strict=True)
    }
    assert roster.names() == {client: name.partition(" ")[2] for name, client in written.items()}
    for allowed in (None, keys_in(tmp_path / "keys")):
        assert load_roster(tmp_path, 2, allowed).numbers == roster.numbers


def test_numbers_follow_the_names_of_the_keys_whoever_comes_first(tmp_path: Path) -> None:
    """So that the operator decides which site is client 0, and nobody can by trying keys."""
    names = ("site-10", "site-2", "site-1")
    files = [make_key(tmp_path / "keys" / name) for name in names]
    nodes = [Node(number, pem(file)) for number, file in enumerate(files)]
    roster = load_roster(tmp_path, 4, keys_in(tmp_path / "keys")).enrol(nodes[:1])
    assert roster.names() == {0: "site-1", 1: "site-2", 2: "site-10"} and roster.present(nodes[:1]) == {2: 0}
    assert roster.enrol(nodes).numbers == roster.numbers
    more = {identity(Node(9, bytes([n]))): f"spare-{n}" for n in range(5)}
    full = Roster(2, allowed=more).enrol([Node(9, bytes([n])) for n in (3, 1)])
    assert full.names() == {0: "spare-1", 1: "spare-3"}, "there are more keys than numbers: those who are there"


def test_names_that_count_the_same_have_an_order() -> None:
    allowed = {identity(node): name for node, name in ((A, "site-1"), (B, "site-01"), (C, "site-001"))}
    assert Roster(3, allowed=allowed).enrol([]).names() == {0: "site-001", 1: "site-01", 2: "site-1"}


def pem(file: Path) -> bytes:
    """A public key as Flower has it."""
    return load_ssh_public_key(file.read_bytes()).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "text", ['{"key:a": 0, "key:b": 0}', '{"key:a x": 0, "key:a y": 1}', '{"key:a": 7}', "[]", '{"key:a": "x"}', "{"]
)
def test_a_roster_that_makes_no_sense_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "roster.json").write_text(text)
    with pytest.raises(ConfigError, match=r"roster\.json does not say which node is which client"):
        load_roster(tmp_path, 3)
