"""A whole secure tally in one process: every message is written and read, by every party in turn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.randomness import Key
from fedvote.secure.answered import Answered
from fedvote.secure.client_steps import help_unmask, mask_ballot
from fedvote.secure.messages import AROUND, SignedKey, ballot_bytes, bundle_bytes, helped, missing
from fedvote.secure.pairwise import KEY_BYTES, KeyPair
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import HASH_BYTES, NONCE_BYTES, Session
from fedvote.secure.shamir import BYTES, Entropy
from fedvote.secure.signed_keys import Witness

KEY_MESSAGE_BYTES = AROUND + KEY_BYTES + 2  # without a signature


@dataclass(frozen=True)
class Sent:
    """Bytes of all messages, by direction."""

    up: int
    down: int


def seeded(key: Key, purpose: str) -> Entropy:
    """Random bytes that follow from a key: the same in every run."""
    stream = key.numpy(f"secure tally, {purpose}")
    return stream.bytes


def key_pair(seed: int, client: int) -> KeyPair:
    """A simulated client's key."""
    return KeyPair.draw(seeded(Key(seed, 0, client), "key"))


def nonce(key: Key) -> bytes:
    """Of a simulated session: it follows from the server's key of the round."""
    return hashlib.sha256(f"{key.seed}/{key.round}/session".encode()).digest()[:NONCE_BYTES]


def tally(
    session: Session,
    ballots: Iterable[tuple[int, Tensor]],
    pairs: Mapping[int, KeyPair],
    entropy: Callable[[int], Entropy],
    gone: Collection[int] = (),
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Sent]:
    """The sum of the ballots, and the bytes that it took; WireError if it cannot be unmasked.

    `ballots`: (client, whole numbers) of those that vote; others vanish before. `gone`: clients that vanish after.
    """
    server, up, down = MaskedTally(session, {c: SignedKey(pairs[c].public) for c in session.cohort}, device), 0, 0
    for client, numbers_n in ballots:
        opening = server.opening(client)
        key, trained = pairs[client], (session.round, session.broadcast)
        frame = mask_ballot(key, client, opening, session.terms, trained, numbers_n, entropy(client), Witness())
        server.add(frame, client)
        up, down = up + len(frame), down + len(opening)
    down += sum(len(server.opening(client)) for client in session.cohort if client not in server.voters)
    for client in session.cohort:
        request = server.request(client)
        down += len(request)
        if client in server.voters and client not in gone:
            answer, _ = help_unmask(pairs[client], client, request, session.terms, Answered(), Witness())
            server.take_shares(answer, client)
            up += len(answer)
    return server.sums(), Sent(up, down)


def bytes_of(session: Session, voters: frozenset[int]) -> Sent:
    """The bytes that `tally` takes, without making any mask. Without enough voters nobody is asked to unmask."""
    opening = NONCE_BYTES + HASH_BYTES + 4 * (1 + len(session.cohort)) + (1 + session.degree) * (KEY_BYTES + 2)
    up, down = len(voters) * ballot_bytes(session), len(session.cohort) * (AROUND + opening)
    if len(voters) < session.fewest:
        return Sent(up, down)
    down += len(session.cohort) * (AROUND + opening + len(session.cohort))
    for client in session.cohort:
        asked = helped(session, client, voters)
        down += len(asked) * bundle_bytes(session)
        if client in voters:
            up += AROUND + sum(1 + BYTES * (1 + len(missing(session, voter, voters))) for voter in asked)
    return Sent(up, down)
