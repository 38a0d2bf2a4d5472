"""A client's part of a secure tally over Flower: its key, its masked ballot, its shares.

Key and answered lists lie in Flower's state, or beside the client's memory, where they survive restarts. The node's
configuration may have `key`, the file of its private key, by which it signs, and `keys`, a folder of all clients'
public keys, by which it checks what others signed.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flwr.app import ConfigRecord, Context

from fedvote.core import Message
from fedvote.engines.flower.memory_place import memory_file
from fedvote.engines.flower.roster import identity_in, identity_of, keys_in
from fedvote.engines.flower.tasks import Task
from fedvote.errors import ConfigError
from fedvote.randomness import SECRET_BYTES
from fedvote.secure import Secrecy, SecureTally
from fedvote.secure.client_steps import Answered, help_unmask, mask_ballot
from fedvote.secure.pairwise import KeyPair
from fedvote.secure.signed_keys import RosterPrivateKey, RosterPublicKey, Witness, signed_key
from fedvote.secure.whole_numbers import to_vector
from fedvote.system.atomic_file import atomic_file
from fedvote.wire import Codecs

RECORD, KEY, LISTS = "secure-tally", "key", "answered"


def rounding_secret(secure: Secrecy, given: bytes) -> bytes:
    """The secret that a client rounds by: its own of this turn, or the one that the server gave it."""
    private = isinstance(secure, SecureTally) and secure.rounds_privately(between_machines=True)
    return os.urandom(SECRET_BYTES) if private else given


@dataclass(frozen=True)
class Voter:
    """One turn of a client in a secure tally."""

    task: Task
    context: Context
    secure: SecureTally
    codecs: Codecs

    def ballot(self, message: Message) -> bytes:
        """The masked ballot."""
        task, terms = self.task, self.secure.terms(self.task.problem.run, self.codecs)
        numbers_n = to_vector(message, self.codecs)
        return mask_ballot(self._key(), task.client, task.opening, terms, numbers_n, os.urandom, self._witness())

    def answer(self) -> bytes:
        """This client's key if the request is empty, else shares for a list of voters."""
        task, terms = self.task, self.secure.terms(self.task.problem.run, self.codecs)
        if not task.broadcast:
            by = self._private_key()
            identity = identity_of(by.public_key()) if by else ""
            return signed_key(task.problem.run, task.client, self._key().public, identity, by)
        answered = Answered(json.loads(self._load().get(LISTS, "{}")))
        shares, answered = help_unmask(self._key(), task.client, task.broadcast, terms, answered, self._witness())
        self._save({LISTS: json.dumps(dict(answered.lists))})  # before it is sent: no second list, whatever happens
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
            raise ConfigError(f"{path} is no private key ({error}): make one with `fedvote deploy key`") from error

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
