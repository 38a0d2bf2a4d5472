"""What two clients share: X25519 by its known vector, seeds that are equal on both sides, sealed bundles."""

from __future__ import annotations

import os

import pytest

from fedvote.errors import WireError
from fedvote.secure.in_process import key_pair
from fedvote.secure.pairwise import KeyPair, pair_seed, seal, unseal
from fedvote.secure.shamir import PRIME

SESSION = bytes(range(32))


def test_the_known_vector_of_x25519() -> None:
    """RFC 7748, Section 6.1: Bob's side."""
    bob = KeyPair(bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"))
    alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert bob.public.hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert bob.secret_with(alice).hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_both_sides_have_one_secret_and_one_seed() -> None:
    one, other = key_pair(0, 1), key_pair(0, 2)
    secret = one.secret_with(other.public)
    assert secret == other.secret_with(one.public)
    assert pair_seed(secret, SESSION, 1, 2) == pair_seed(secret, SESSION, 2, 1) < PRIME


def test_seeds_differ_by_pair_and_by_session() -> None:
    secrets = [key_pair(0, a).secret_with(key_pair(0, b).public) for a, b in ((1, 2), (1, 3), (2, 3))]
    seeds = {pair_seed(secret, session, 1, 2) for secret in secrets for session in (SESSION, bytes(32))}
    assert len(seeds) == 6


@pytest.mark.parametrize("public", [bytes(32), bytes(31)], ids=["all zeros", "too short"])
def test_a_key_that_gives_everybody_one_secret_is_refused(public: bytes) -> None:
    with pytest.raises(WireError, match="cannot be used"):
        key_pair(0, 1).secret_with(public)


def test_a_bundle_is_opened_by_its_receiver_from_its_sender_in_its_session_alone() -> None:
    secret = key_pair(0, 1).secret_with(key_pair(0, 2).public)
    sealed = seal(secret, SESSION, 1, 2, b"shares", os.urandom)
    assert sealed != seal(secret, SESSION, 1, 2, b"shares", os.urandom)
    assert unseal(secret, SESSION, 1, 2, sealed) == b"shares"
    other = key_pair(0, 1).secret_with(key_pair(0, 3).public)
    for args in (
        (secret, SESSION, 2, 1, sealed),
        (secret, bytes(32), 1, 2, sealed),
        (other, SESSION, 1, 2, sealed),
        (secret, SESSION, 1, 2, sealed[:-1] + bytes([sealed[-1] ^ 1])),
    ):
        with pytest.raises(WireError, match="did not seal"):
            unseal(*args)
