"""The roster: the client number of each node. A node keeps its number, and so its reputation, for the whole run.

A node's identity is its public key, which survives restarts of node and server. If the server has a folder of public
keys, only these keys get a number, whoever else registered at the SuperLink, and the numbers follow the names of the
files: so the operator decides which site is client 0. Without such a folder they follow the digests of the keys.
Flower's simulation has no keys: there a node's identity is its id, which is new in every run, and a resumed run assigns
these numbers again.

A line of roster.json is "key:DIGEST NAME": CLIENT. NAME comes from NAME.pub in the folder of keys. It is for people;
the server ignores it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from fedvote.errors import ConfigError
from fedvote.system.atomic_file import write

FILE = "roster.json"
BY_KEY, BY_ID = "key:", "node:"  # prefixes of identities


class Node(Protocol):
    """A node that is online, as Flower describes it."""

    @property
    def node_id(self) -> int: ...
    @property
    def public_key(self) -> bytes: ...


def identity(node: Node) -> str:
    """The text that identifies a node."""
    return _by_key(node.public_key) if node.public_key else BY_ID + str(node.node_id)


def _by_key(public_key: bytes) -> str:
    return BY_KEY + hashlib.sha256(public_key).hexdigest()[:32]


@dataclass(frozen=True)
class Roster:
    """The numbers of known nodes, and the nodes that may get one."""

    clients: int  # in the federation
    numbers: Mapping[str, int] = field(default_factory=dict)  # identity -> client
    allowed: Mapping[str, str] | None = None  # identity -> name, of nodes that may get a number; None: all may

    def enrol(self, nodes: Iterable[Node]) -> Roster:
        """Give newcomers the lowest free numbers, while there are any.

        Where every key of the folder has a place, all get their numbers at once: who comes first does not matter.
        """
        newcomers = self.strangers(nodes)
        if self.allowed is not None:
            everybody = len(self.allowed) <= self.clients
            names = {who: name for who, name in self.allowed.items() if everybody or who in newcomers}
            by_name = {who: (in_order(name), name, who) for who, name in names.items()}
            newcomers = sorted(names.keys() - self.numbers.keys(), key=by_name.__getitem__)
        free = [number for number in range(self.clients) if number not in self.numbers.values()]
        return replace(self, numbers={**self.numbers, **dict(zip(newcomers, free, strict=False))})

    def present(self, nodes: Iterable[Node]) -> dict[int, int]:
        """Client -> node id, of the clients among these nodes."""
        node_ids = {identity(node): node.node_id for node in nodes}
        return {client: node_ids[who] for who, client in self.numbers.items() if who in node_ids}

    def strangers(self, nodes: Iterable[Node]) -> list[str]:
        """Identities of the nodes without a number, and so without a vote."""
        return sorted({identity(node) for node in nodes} - self.numbers.keys())

    def names(self) -> dict[int, str]:
        """Client -> name, of the clients that have one."""
        named = self.allowed or {}
        return {client: named[who] for who, client in self.numbers.items() if who in named}

    def in_full(self, who: str) -> str:
        """An identity, and its name if it has one."""
        return f"{who} {(self.allowed or {}).get(who, '')}".rstrip()


def in_order(name: str) -> tuple[tuple[str, int], ...]:
    """A key by which names are sorted as people count: site-2 before site-10."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name))


def save_roster(folder: Path, roster: Roster) -> None:
    """Write the numbers into the run folder."""
    lines = {roster.in_full(who): client for who, client in roster.numbers.items()}
    write(folder / FILE, json.dumps(lines, indent=2) + "\n")


def keys_in(folder: Path) -> dict[str, str]:
    """Identity -> NAME, of every public key NAME.pub in a folder."""
    files = sorted(folder.glob("*.pub"))
    if not files:
        raise ConfigError(f"{folder} holds no public keys, expected a file NAME.pub for every client")
    return {identity_in(file): file.stem for file in files}


def identity_in(file: Path) -> str:
    """The identity of the node with this public key."""
    try:
        key = load_ssh_public_key(file.read_bytes())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file} is not a public key ({error}): make one with `fedvote deploy key`") from error
    return identity_of(key)


def identity_of(key: PublicKeyTypes) -> str:
    """The identity of the node with this public key."""
    return _by_key(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))  # Flower's format


def load_roster(folder: Path, clients: int, allowed: Mapping[str, str] | None = None) -> Roster:
    """The roster of a run folder, without nodes that have no key and without keys that are no longer allowed."""
    path = folder / FILE
    if not path.is_file():
        return Roster(clients, allowed=allowed)
    try:
        lines = json.loads(path.read_text(encoding="utf-8"))
        numbers = {str(line).partition(" ")[0]: int(number) for line, number in lines.items()}
        if len(set(numbers.values())) < len(lines) or not set(numbers.values()) <= set(range(clients)):
            raise ValueError(f"its numbers are not distinct, or not from 0 to {clients - 1}")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"{path} does not say which node is which client ({error}): restore it, or delete it; "
            "nodes then get new numbers, with the reputations of the nodes that had them before"
        ) from error
    kept = {who for who in numbers if who.startswith(BY_KEY) and (allowed is None or who in allowed)}
    return Roster(clients, {who: number for who, number in numbers.items() if who in kept}, allowed)
