"""A client's part of a secure tally over Flower: its key, its masked ballot, its shares.

Key and answered lists lie in Flower's state, or beside the client's memory, where they survive restarts. The node's
configuration may have `key`, the file of its private key, by which it signs; `keys`, a folder of all clients' public
keys, by which it checks what others signed; and `tally`, the fewest ballots of a tally that it votes in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from filelock import FileLock
from flwr.app import ConfigRecord, Context, UserConfig

from fedvote.core import Message
from fedvote.engines.flower.memory_place import memory_file
from fedvote.engines.flower.roster import identity_in, identity_of, keys_in
from fedvote.engines.flower.tasks import Task
from fedvote.errors import ConfigError
from fedvote.randomness import SECRET_BYTES
from fedvote.secure import Secrecy, SecureTally
from fedvote.secure.answered import Answered
from fedvote.secure.broadcast_hash import hash_of
from fedvote.secure.client_steps import help_unmask, mask_ballot
from fedvote.secure.pairwise import KeyPair
from fedvote.secure.session import Terms
from fedvote.secure.signed_keys import RosterPrivateKey, RosterPublicKey, Witness, signed_key
from fedvote.secure.whole_numbers import to_vector
from fedvote.system.atomic_file import atomic_file
from fedvote.wire import Codecs

RECORD, KEY, LISTS = "secure-tally", "key", "answered"


def rounding_secret(secure: Secrecy, given: bytes) -> bytes:
    """The secret that a client rounds by: its own of this turn, or the one that the server gave it."""
    private = secure.rounds_privately(between_machines=True)
    return os.urandom(SECRET_BYTES) if private else given


def check_demand(node: UserConfig, secure: Secrecy) -> None:
    """ConfigError if the server's configuration promises less than `tally` in the node's configuration demands."""
    if "tally" not in node:
        return
    least, why = node["tally"], ""
    if not isinstance(least, int) or least < 2:
        raise ConfigError(f"tally in the node's configuration is {least!r}, expected a number of ballots: 2 or more")
    if not isinstance(secure, SecureTally):
        why = "sees every ballot: it needs secure.name = tally"
    elif secure.minimum < least:
        why = f"unmasks tallies of {secure.minimum}: it needs secure.minimum = {least}"
    elif secure.neighbours or 0 < secure.threshold <= 0.5 or not secure.rounds_privately(between_machines=True):
        why = "weakens the tally: it needs secure.threshold = 0, secure.neighbours = 0 and secure.rounding = private"
    if why:
        raise ConfigError(f"this node votes only in secure tallies of {least} ballots or more, but the server {why}")


@dataclass(frozen=True)
class Voter:
    """One turn of a client in a secure tally."""

    task: Task
    context: Context
    secure: SecureTally
    codecs: Codecs

    @property
    def terms(self) -> Terms:
        problem = self.task.problem
        return self.secure.terms(problem.run, self.codecs, problem.hash)

    def ballot(self, message: Message, broadcast: Message) -> bytes:
        """The masked ballot of a client that started from this broadcast."""
        task, trained, numbers_n = self.task, (self.task.round, hash_of(broadcast)), to_vector(message, self.codecs)
        with self._alone():
            key = self._key()
        opening, witness = task.opening, self._witness()
        return mask_ballot(key, task.client, opening, self.terms, trained, numbers_n, os.urandom, witness)

    def answer(self) -> bytes:
        """This client's key if the request is empty, else shares for a list of voters."""
        task = self.task
        with self._alone():
            if not task.broadcast:
                by = self._private_key()
                identity = identity_of(by.public_key()) if by else ""
                return signed_key(task.problem.run, task.client, self._key().public, identity, by)
            answered = Answered.read(self._load().get(LISTS, "{}"))
            request, witness = task.broadcast, self._witness()
            shares, answered = help_unmask(self._key(), task.client, request, self.terms, answered, witness)
            self._save({LISTS: answered.written()})  # before it is sent: no second list, whatever happens
            return shares

    def _key(self) -> KeyPair:
        """This client's key of the run; a new one, if there is none."""
        if KEY not in self._load():
            self._save({KEY: KeyPair.draw(os.urandom).private.hex()})
        return KeyPair(bytes.fromhex(self._load()[KEY]))

    def _private_key(self) -> RosterPrivateKey | None:
        if "key" not in self.context.node_config:
            return None
        path = Path(str(self.context.node_config["key"]))
        try:
            return cast(RosterPrivateKey, load_ssh_private_key(path.read_bytes(), None))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} is not a private key ({error}): make one with `fedvote deploy key`") from error

    def _witness(self) -> Witness:
        if "keys" not in self.context.node_config:
            return Witness()
        folder = Path(str(self.context.node_config["keys"]))
        names = keys_in(folder)
        files = [folder / f"{name}.pub" for name in names.values()]
        return Witness({identity_in(f): cast(RosterPublicKey, load_ssh_public_key(f.read_bytes())) for f in files})

    @property
    def _file(self) -> Path | None:
        memory = memory_file(self.context.node_config, self.task)
        return memory.with_suffix(".secure.json") if memory else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other turn of this client, in whichever process, reads or writes the file meanwhile."""
        if self._file is None:
            yield
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._file.with_suffix(".lock")):
            yield

    def _load(self) -> dict[str, str]:
        if self._file is not None:
            return json.loads(self._file.read_text()) if self._file.is_file() else {}
        record = self.context.state.config_records.get(RECORD)
        return {name: str(value) for name, value in record.items()} if record else {}

    def _save(self, changes: dict[str, str]) -> None:
        kept = self._load() | changes
        if self._file is None:
            self.context.state[RECORD] = ConfigRecord(dict(kept))
            return
        with atomic_file(self._file, secret=True) as part:
            part.write_text(json.dumps(kept))
