"""A masked ballot, made again from docs/wire-format.md with nothing of the package: every byte is as the page says."""

from __future__ import annotations

import hashlib
import hmac
import struct

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tests.secure.parties import parties

P = 2**128 - 159
COUNT, CLIENTS, BITS, HELPERS, THRESHOLD = 21, 4, 3, 3, 2


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869, for one block of output."""
    return hmac.new(hmac.new(salt, secret, "sha256").digest(), info + b"\1", "sha256").digest()


def mask(seed: int) -> np.ndarray:
    """Whole numbers, by their bit planes."""
    key = hashlib.sha256(b"fedvote mask" + seed.to_bytes(16, "little")).digest()
    numbers = np.zeros(COUNT, int)
    for plane in range(BITS):
        nonce = bytes(4) + plane.to_bytes(12, "little")
        stream = Cipher(ChaCha20(key, nonce), None).encryptor().update(bytes(3))
        numbers += np.unpackbits(np.frombuffer(stream, np.uint8))[:COUNT].astype(int) << plane
    return numbers


def test_a_masked_ballot_is_as_the_page_says() -> None:
    round, client = parties(CLIENTS, COUNT), 1
    frame, entropy = round.ballot(client), round.entropy(client)
    nonce = round.session.nonce
    terms = struct.pack("<IQIIdI", 1, COUNT, BITS, HELPERS, 0.0, 3)
    parts = (b"a run", b"", terms, nonce, bytes(32), struct.pack("<4I", 0, 1, 2, 3))
    S = hashlib.sha256(b"".join(struct.pack("<I", len(part)) + part for part in parts)).digest()
    assert frame[:30] == b"FVST" + struct.pack("<BBIi", 1, 3, 1, client) + S[:16]

    own = int.from_bytes(entropy(32), "little") % P
    private = X25519PrivateKey.from_private_bytes(round.pairs[client].private)
    secrets, seeds = {}, {}
    for other in (0, 2, 3):
        secrets[other] = private.exchange(X25519PublicKey.from_public_bytes(round.keys[other].public))
        info = b"fedvote secure tally 1 mask" + struct.pack("<II", min(client, other), max(client, other))
        seeds[other] = int.from_bytes(hkdf(secrets[other], S, info), "little") % P

    total = round.ballots_KD[client].numpy() + mask(own) + mask(seeds[0]) - mask(seeds[2]) - mask(seeds[3])
    planes = np.unpackbits(np.frombuffer(frame[30:39], np.uint8).reshape(BITS, 3), axis=1)[:, :COUNT]
    assert (sum(plane.astype(int) << i for i, plane in enumerate(planes)) == total % 2**BITS).all()

    for place, seed in enumerate((own, *seeds.values())):
        check = hashlib.sha256(b"fedvote check" + seed.to_bytes(16, "little")).digest()[:8]
        assert frame[39 + 8 * place : 47 + 8 * place] == check

    slopes = [int.from_bytes(entropy(32), "little") % P for _ in range(4)]  # polynomials of degree t - 1 = 1
    for place, helper in enumerate((0, 2, 3)):
        at = 39 + 32 + 92 * place
        nonce, sealed = frame[at : at + 12], frame[at + 12 : at + 92]
        info = b"fedvote secure tally 1 bundle" + struct.pack("<II", client, helper)
        text = ChaCha20Poly1305(hkdf(secrets[helper], S, info)).decrypt(nonce, sealed, S)
        shares = [(seed + slope * (place + 1)) % P for seed, slope in zip((own, *seeds.values()), slopes, strict=True)]
        assert text == b"".join(value.to_bytes(16, "little") for value in shares)
    assert len(frame) == 39 + 32 + 3 * 92 + 4
