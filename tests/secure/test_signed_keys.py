"""Keys of the protocol are signed by keys of the roster, for one run and one client."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedvote.errors import WireError
from fedvote.secure.in_process import KEY_MESSAGE_BYTES, key_pair
from fedvote.secure.messages import KEY, NO_SESSION, SignedKey, write
from fedvote.secure.signed_keys import RosterPrivateKey, Witness, read_key, signed_key

PRIVATE: dict[str, RosterPrivateKey] = {
    "key:a": derive_private_key(1234, SECP384R1()),
    "key:b": Ed25519PrivateKey.from_private_bytes(bytes(range(32))),
}
WITNESS = Witness({name: private.public_key() for name, private in PRIVATE.items()})


def key_of(client: int, identity: str, run: str = "run") -> SignedKey:
    return read_key(signed_key(run, client, key_pair(0, client).public, identity, PRIVATE[identity]), client)


def test_signed_keys_pass_and_so_do_unsigned_ones_without_a_roster() -> None:
    WITNESS.check("run", {0: key_of(0, "key:a"), 1: key_of(1, "key:b")})
    frame = signed_key("run", 0, key_pair(0, 0).public)
    assert len(frame) == KEY_MESSAGE_BYTES
    Witness().check("run", {0: read_key(frame, 0)})


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({0: SignedKey(key_pair(0, 0).public)}, "nobody, who is not in the roster"),
        ({0: SignedKey(key_pair(0, 0).public, "key:a", b"wrong")}, "not signed by key:a"),
        ({0: key_of(0, "key:a", "another run")}, "not signed by key:a for this run"),
        ({0: key_of(0, "key:b", "another run")}, "not signed by key:b for this run"),
        ({1: key_of(0, "key:a")}, "not signed by key:a"),
        ({0: key_of(0, "key:a"), 1: key_of(1, "key:a")}, "two clients with one key of the roster"),
    ],
    ids=["unsigned", "wrong signature", "replayed from a run", "the same, Ed25519", "of another client", "twice"],
)
def test_a_key_that_its_client_did_not_sign_for_this_run_is_refused(keys: dict[int, SignedKey], problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        WITNESS.check("run", keys)


def test_a_key_message_of_another_client_is_refused() -> None:
    with pytest.raises(WireError, match="client 0, expected 1"):
        read_key(signed_key("run", 0, key_pair(0, 0).public), 1)


def test_an_identity_that_could_not_be_passed_on_is_refused() -> None:
    """200 bytes that are not ASCII would be 600 in an opening, whose length byte holds 255: the server would stop."""
    payload = key_pair(0, 0).public + bytes([200]) + 200 * b"\xff" + bytes(1)
    with pytest.raises(WireError, match="identity is not ASCII"):
        read_key(write(KEY, 0, 0, NO_SESSION, payload), 0)
    longest = key_pair(0, 0).public + bytes([255]) + 255 * b"a" + bytes([255]) + 255 * b"\xff"
    assert read_key(write(KEY, 0, 0, NO_SESSION, longest), 0).written() == longest
