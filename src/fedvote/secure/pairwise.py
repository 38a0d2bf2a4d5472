"""What two clients share and nobody else knows: a secret by X25519, once a run; from it seeds and keys, by HKDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedvote.errors import WireError
from fedvote.secure.shamir import BYTES, PRIME, Entropy

KEY_BYTES = 32  # of X25519
NONCE_BYTES, TAG_BYTES = 12, 16
SEAL_BYTES = NONCE_BYTES + TAG_BYTES  # that sealing adds


@dataclass(frozen=True)
class KeyPair:
    """A client's X25519 key for one run."""

    private: bytes = field(repr=False)

    @classmethod
    def draw(cls, entropy: Entropy) -> KeyPair:
        return cls(entropy(KEY_BYTES))

    @cached_property
    def _key(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.private)

    @cached_property
    def public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def secret_with(self, public: bytes) -> bytes:
        """z_uv: the same for both sides. WireError for a public key that gives everybody the same secret."""
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise WireError(f"a public key of {len(public)} bytes that cannot be used ({error})") from error


def pair_seed(secret: bytes, session: bytes, one: int, other: int) -> int:
    """s_uv: the seed of the mask that two clients share in a session."""
    names = b"mask" + _number(min(one, other)) + _number(max(one, other))
    return int.from_bytes(_derive(secret, session, names), "little") % PRIME


def seal(secret: bytes, session: bytes, sender: int, receiver: int, text: bytes, entropy: Entropy) -> bytes:
    """Encrypt and authenticate a bundle from one client to another.

    The nonce is random: a client that is asked again in a session seals other shares by the same key.
    """
    nonce = entropy(NONCE_BYTES)
    return nonce + _cipher(secret, session, sender, receiver).encrypt(nonce, text, session)


def unseal(secret: bytes, session: bytes, sender: int, receiver: int, sealed: bytes) -> bytes:
    """The bundle; WireError if it is not one from this sender to this receiver in this session."""
    try:
        nonce, text = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        return _cipher(secret, session, sender, receiver).decrypt(nonce, text, session)
    except InvalidTag as error:
        raise WireError(f"a bundle that client {sender} did not seal for client {receiver} in this session") from error


def _cipher(secret: bytes, session: bytes, sender: int, receiver: int) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(_derive(secret, session, b"bundle" + _number(sender) + _number(receiver)))


def _derive(secret: bytes, session: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 2 * BYTES, session, b"fedvote secure tally 1 " + info).derive(secret)


def _number(client: int) -> bytes:
    return client.to_bytes(4, "little")
