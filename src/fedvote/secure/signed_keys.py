"""Keys of the protocol, signed by keys of the roster: a server cannot put its own in their place.

The signature is of the run, the client's number and the key: one of another run or client is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from fedvote.errors import WireError
from fedvote.secure.messages import KEY, NO_SESSION, Reading, SignedKey, read, write

RosterPrivateKey = EllipticCurvePrivateKey | Ed25519PrivateKey
RosterPublicKey = EllipticCurvePublicKey | Ed25519PublicKey


def signed_key(run: str, client: int, public: bytes, identity: str = "", by: RosterPrivateKey | None = None) -> bytes:
    """The message that brings a client's key to the server; without a signature, if it has no key of the roster."""
    statement = _statement(run, client, public)
    if isinstance(by, Ed25519PrivateKey):
        signature = by.sign(statement)
    else:
        signature = by.sign(statement, ECDSA(SHA256())) if by else b""
    key = SignedKey(public, identity, signature)
    return write(KEY, 0, client, NO_SESSION, key.written())


def read_key(frame: bytes, client: int) -> SignedKey:
    """The key in a client's message."""
    reading = Reading(read(frame, KEY, client, 0, NO_SESSION))
    key = reading.key()
    reading.end()
    return key


@dataclass(frozen=True)
class Witness:
    """Checks keys. With the public keys of a roster, every key has to be signed by one of them."""

    roster: Mapping[str, RosterPublicKey] | None = field(default=None, repr=False)  # identity -> public key

    def check(self, run: str, keys: Mapping[int, SignedKey]) -> None:
        """WireError if a key is not what its client signed for this run, or two clients have one key."""
        if len({key.public for key in keys.values()}) != len(keys):
            raise WireError("two clients with one public key: a key was replayed")
        if self.roster is None:
            return
        if len({key.identity for key in keys.values()}) != len(keys):
            raise WireError("two clients with one key of the roster: one of them uses another client's key")
        for client, key in keys.items():
            self._check_signature(run, client, key)

    def _check_signature(self, run: str, client: int, key: SignedKey) -> None:
        by = (self.roster or {}).get(key.identity)
        if by is None:
            raise WireError(f"client {client} has a key of {key.identity or 'nobody'}, who is not in the roster here")
        statement = _statement(run, client, key.public)
        try:
            if isinstance(by, Ed25519PublicKey):
                by.verify(key.signature, statement)
            else:
                by.verify(key.signature, statement, ECDSA(SHA256()))
        except InvalidSignature as error:
            raise WireError(f"client {client}'s key is not signed by {key.identity} for this run") from error


def _statement(run: str, client: int, public: bytes) -> bytes:
    return b"fedvote secure tally 1\0" + run.encode() + b"\0" + client.to_bytes(4, "little") + public
