"""Which node is which client: a node keeps its number, and with it its reputation and its data, for the whole run.

A node is known by its public key, which survives restarts, of the server too. Where the server has a folder of public
keys, nobody else is given a number, whoever registered at the SuperLink. Flower's simulation has no keys: there
a node is known by its id, which is new in every run, so that such numbers are given out again when a run is resumed.

A line of roster.json is "key:DIGEST NAME": CLIENT, where NAME is that of NAME.pub in the folder of keys. It is for
people, and nobody looks at it when the file is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from fedvote.errors import ConfigError
from fedvote.system.atomic_file import write

FILE = "roster.json"
BY_KEY, BY_ID = "key:", "node:"


class Node(Protocol):
    """What Flower says of a node that is online."""

    @property
    def node_id(self) -> int: ...
    @property
    def public_key(self) -> bytes: ...


def identity(node: Node) -> str:
    """The name under which a node is remembered."""
    return _by_key(node.public_key) if node.public_key else BY_ID + str(node.node_id)


def _by_key(public_key: bytes) -> str:
    return BY_KEY + hashlib.sha256(public_key).hexdigest()[:32]


@dataclass(frozen=True)
class Roster:
    clients: int
    numbers: Mapping[str, int] = field(default_factory=dict)  # identity -> client
    allowed: Mapping[str, str] | None = None  # identity -> name, of who may have a number; None: whoever comes

    def enrol(self, nodes: Iterable[Node]) -> Roster:
        """Give newcomers the lowest free numbers; where none is free, they stay without."""
        newcomers = [name for name in self.strangers(nodes) if self.allowed is None or name in self.allowed]
        free = [number for number in range(self.clients) if number not in self.numbers.values()]
        return replace(self, numbers={**self.numbers, **dict(zip(newcomers, free, strict=False))})

    def present(self, nodes: Iterable[Node]) -> dict[int, int]:
        """client -> node id, of those who are online."""
        here = {identity(node): node.node_id for node in nodes}
        return {client: here[name] for name, client in self.numbers.items() if name in here}

    def strangers(self, nodes: Iterable[Node]) -> list[str]:
        """Nodes that are online, but have no number and so no vote."""
        return sorted({identity(node) for node in nodes} - self.numbers.keys())

    def names(self) -> dict[int, str]:
        """client -> name, of those who have one."""
        known = self.allowed or {}
        return {client: known[who] for who, client in self.numbers.items() if who in known}

    def in_full(self, who: str) -> str:
        """An identity, with the name that people know it by, if there is one."""
        return f"{who} {(self.allowed or {}).get(who, '')}".rstrip()


def save_roster(folder: Path, roster: Roster) -> None:
    lines = {roster.in_full(who): client for who, client in roster.numbers.items()}
    write(folder / FILE, json.dumps(lines, indent=2) + "\n")


def keys_in(folder: Path) -> dict[str, str]:
    """Who has a public key in this folder, as NAME.pub: identity -> NAME."""
    files = sorted(folder.glob("*.pub"))
    if not files:
        raise ConfigError(f"{folder} holds no public keys, expected a NAME.pub of every client")
    return {identity_in(file): file.stem for file in files}


def identity_in(file: Path) -> str:
    """The name under which the owner of a public key is remembered."""
    try:
        key = load_ssh_public_key(file.read_bytes())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file} is no public key ({error})") from error
    return _by_key(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))  # as Flower has it


def load_roster(folder: Path, clients: int, allowed: Mapping[str, str] | None = None) -> Roster:
    """The roster of the run in a folder, without those who cannot be known again, or are no longer allowed."""
    path = folder / FILE
    if not path.is_file():
        return Roster(clients, allowed=allowed)
    try:
        lines = json.loads(path.read_text(encoding="utf-8"))
        numbers = {str(line).partition(" ")[0]: int(number) for line, number in lines.items()}
        if len(set(numbers.values())) < len(lines) or not set(numbers.values()) <= set(range(clients)):
            raise ValueError(f"its numbers are not different ones from 0 to {clients - 1}")
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"{path} does not say which node is which client ({error}): restore it, or delete it, "
            "and nodes are given new numbers, with the reputations of whoever had them before"
        ) from error
    known = {name for name in numbers if name.startswith(BY_KEY) and (allowed is None or name in allowed)}
    return Roster(clients, {name: number for name, number in numbers.items() if name in known}, allowed)
