"""The five messages of a secure tally as bytes. See docs/wire-format.md.

offset  size  field
0       4     "FVST"
4       1     format version
5       1     kind: key, opening, ballot, voters, shares
6       4     round; 0 for a key
10      4     client: the sender, or the receiver of an opening or voters
14      16    the session's hash, cut; zeros for a key
30      ...   payload
end-4   4     CRC-32 of everything before it
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedvote.errors import WireError
from fedvote.secure.masks import CHECK_BYTES
from fedvote.secure.pairwise import KEY_BYTES, SEAL_BYTES
from fedvote.secure.session import HASH_BYTES, NONCE_BYTES, Session, Terms
from fedvote.secure.shamir import BYTES

MAGIC, VERSION = b"FVST", 1
KEY, OPENING, BALLOT, VOTERS, SHARES = range(1, 6)
HEAD = struct.Struct("<4sBBIi16s")
CHECKSUM = struct.Struct("<I")
AROUND = HEAD.size + CHECKSUM.size  # bytes around a payload
NO_SESSION = bytes(32)


@dataclass(frozen=True)
class SignedKey:
    """A client's public key, signed by its key of the roster; identity and signature are empty where there is none."""

    public: bytes
    identity: str = ""
    signature: bytes = b""

    def written(self) -> bytes:
        name = self.identity.encode()
        return self.public + bytes([len(name)]) + name + bytes([len(self.signature)]) + self.signature


class Reading:
    """A payload that is read from front to end."""

    def __init__(self, payload: bytes):
        self._payload, self._at = payload, 0

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._payload):
            raise WireError(f"a message with {len(self._payload) - self._at} bytes left, expected {size}")
        self._at += size
        return self._payload[self._at - size : self._at]

    def key(self) -> SignedKey:
        public = self.take(KEY_BYTES)
        name, signature = self.take(self.take(1)[0]), self.take(self.take(1)[0])
        if not name.isascii():  # in other characters it might not fit into the messages that pass it on
            raise WireError("a key whose identity is not ASCII text")
        return SignedKey(public, name.decode("ascii"), signature)

    def rest(self) -> bytes:
        return self.take(len(self._payload) - self._at)

    def end(self) -> None:
        if rest := len(self._payload) - self._at:
            raise WireError(f"{rest} bytes too many in a message")


def write(kind: int, round: int, client: int, session: bytes, payload: bytes) -> bytes:
    frame = HEAD.pack(MAGIC, VERSION, kind, round, client, session[:16]) + payload
    return frame + CHECKSUM.pack(zlib.crc32(frame))


def read(frame: bytes, kind: int, client: int, round: int | None = None, session: bytes | None = None) -> bytes:
    """The payload; WireError if it is not the expected message. A round or session of None may be any."""
    if len(frame) < AROUND:
        raise WireError(f"{len(frame)} bytes are too few for a message of a secure tally")
    magic, version, given, its_round, its_client, its_session = HEAD.unpack_from(frame)
    if (magic, version) != (MAGIC, VERSION):
        raise WireError(f"a message of {magic!r} version {version}, expected {MAGIC!r} version {VERSION}")
    if zlib.crc32(memoryview(frame)[: -CHECKSUM.size]) != CHECKSUM.unpack(frame[-CHECKSUM.size :])[0]:
        raise WireError("the checksum does not match: the message was altered or cut")
    expected: dict[str, tuple[object, object]] = {"kind": (given, kind), "client": (its_client, client)}
    expected |= {} if round is None else {"round": (its_round, round)}
    expected |= {} if session is None else {"session": (its_session, session[:16])}
    for field, (value, want) in expected.items():
        if value != want:
            raise WireError(f"a message of {field} {value!r}, expected {want!r}")
    return frame[HEAD.size : -CHECKSUM.size]


def round_of(frame: bytes) -> int:
    return int(HEAD.unpack_from(frame)[3]) if len(frame) >= AROUND else 0


# openings: who takes part


def write_opening(session: Session, client: int, keys: Mapping[int, SignedKey]) -> bytes:
    return write(OPENING, session.round, client, session.id, _opening(session, client, keys))


def read_opening(frame: bytes, terms: Terms, client: int) -> tuple[Session, dict[int, SignedKey]]:
    """The session, and the keys of this client and its neighbours, as the server has them."""
    reading = Reading(read(frame, OPENING, client))
    session, keys = _read_opening(reading, terms, round_of(frame), client)
    reading.end()
    _check_session(frame, session)
    return session, keys


def _opening(session: Session, client: int, keys: Mapping[int, SignedKey]) -> bytes:
    cohort = struct.pack(f"<I{len(session.cohort)}I", len(session.cohort), *session.cohort)
    known = (keys[other].written() for other in (client, *session.neighbours[client]))
    return b"".join((session.nonce, session.broadcast, cohort, *known))


def _read_opening(reading: Reading, terms: Terms, round: int, client: int) -> tuple[Session, dict[int, SignedKey]]:
    nonce, broadcast = reading.take(NONCE_BYTES), reading.take(HASH_BYTES)
    (clients,) = struct.unpack("<I", reading.take(4))
    cohort = struct.unpack(f"<{clients}I", reading.take(4 * clients))
    session = Session(terms, round, nonce, cohort, broadcast)
    if client not in cohort:
        raise WireError(f"a session that does not include its receiver, client {client}")
    return session, {other: reading.key() for other in (client, *session.neighbours[client])}


def _check_session(frame: bytes, session: Session) -> None:
    """WireError if the server's hash is another than the one of what this client was told."""
    if HEAD.unpack_from(frame)[5] != session.id[:16]:
        raise WireError("the server's session has another configuration, cohort or broadcast than this client was sent")


# masked ballots


@dataclass(frozen=True)
class MaskedBallot:
    planes: bytes
    checks: Sequence[bytes]  # of the own seed, and of the seed with each neighbour
    bundles: Mapping[int, bytes]  # helper -> the shares sealed for it


def bundle_bytes(session: Session) -> int:
    """Of a sealed bundle: a share of each seed, and the seal."""
    return BYTES * (1 + session.degree) + SEAL_BYTES


def write_ballot(session: Session, client: int, ballot: MaskedBallot) -> bytes:
    bundles = (ballot.bundles[helper] for helper in session.neighbours[client])
    return write(BALLOT, session.round, client, session.id, b"".join((ballot.planes, *ballot.checks, *bundles)))


def read_ballot(frame: bytes, session: Session, client: int) -> MaskedBallot:
    reading = Reading(read(frame, BALLOT, client, session.round, session.id))
    if len(frame) != ballot_bytes(session):
        raise WireError(f"a masked ballot of {len(frame)} bytes, expected {ballot_bytes(session)}")
    planes = reading.take(session.planes_bytes)
    checks = [reading.take(CHECK_BYTES) for _ in range(1 + session.degree)]
    return MaskedBallot(
        planes, checks, {helper: reading.take(bundle_bytes(session)) for helper in session.neighbours[client]}
    )


def ballot_bytes(session: Session) -> int:
    shares = (1 + session.degree) * CHECK_BYTES + session.degree * bundle_bytes(session)
    return AROUND + session.planes_bytes + shares


def most_bytes(terms: Terms, clients: int) -> int:
    """Of any answer in a session of so many clients: a masked ballot has more shares than any other."""
    return ballot_bytes(Session(terms, 1, bytes(NONCE_BYTES), tuple(range(clients))))


# voters, and the shares that they ask for


def write_voters(
    session: Session, client: int, keys: Mapping[int, SignedKey], voters: frozenset[int], bundles: Mapping[int, bytes]
) -> bytes:
    """`bundles`: voter -> what it sealed for this client."""
    marks = bytes(other in voters for other in session.cohort)
    sealed = b"".join(bundles[voter] for voter in helped(session, client, voters))
    payload = _opening(session, client, keys) + marks + sealed
    return write(VOTERS, session.round, client, session.id, payload)


def read_voters(
    frame: bytes, terms: Terms, client: int
) -> tuple[Session, dict[int, SignedKey], frozenset[int], dict[int, bytes]]:
    reading = Reading(read(frame, VOTERS, client))
    session, keys = _read_opening(reading, terms, round_of(frame), client)
    _check_session(frame, session)
    marks = reading.take(len(session.cohort))
    voters = frozenset(other for other, mark in zip(session.cohort, marks, strict=True) if mark)
    sealed = {voter: reading.take(bundle_bytes(session)) for voter in helped(session, client, voters)}
    reading.end()
    return session, keys, voters, sealed


def helped(session: Session, helper: int, voters: frozenset[int]) -> list[int]:
    """The voters that a client helps to unmask."""
    return [other for other in session.neighbours[helper] if other in voters]


def missing(session: Session, voter: int, voters: frozenset[int]) -> list[int]:
    """A voter's neighbours that did not vote: its masks with them do not cancel."""
    return [other for other in session.neighbours[voter] if other not in voters]


def write_shares(session: Session, client: int, shares: Mapping[int, Sequence[int]], voters: frozenset[int]) -> bytes:
    """`shares`: voter -> of its own seed and of those with missing neighbours; without voters of damaged bundles."""
    parts = [
        b"\1" + b"".join(value.to_bytes(BYTES, "little") for value in shares[voter]) if voter in shares else b"\0"
        for voter in helped(session, client, voters)
    ]
    return write(SHARES, session.round, client, session.id, b"".join(parts))


def read_shares(frame: bytes, session: Session, client: int, voters: frozenset[int]) -> Iterator[tuple[int, list[int]]]:
    """(voter, shares) of each voter whose bundle the helper could open."""
    reading = Reading(read(frame, SHARES, client, session.round, session.id))
    for voter in helped(session, client, voters):
        if reading.take(1) == b"\1":
            seeds = 1 + len(missing(session, voter, voters))
            yield voter, [int.from_bytes(reading.take(BYTES), "little") for _ in range(seeds)]
    reading.end()
