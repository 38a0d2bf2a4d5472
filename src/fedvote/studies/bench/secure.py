"""Seconds and bytes of a secure tally, by number of clients: all pairs as neighbours, and the graph for many.

A client's work is one masked ballot with its shares, and one answer to a list of voters. Both are measured, and so are
the server's addition of one ballot, the making and adding of one mask, and the seeds of one voter from their shares.
The server's seconds for a round are these times their number: all ballots, a mask for each voter, and if a third is
lost one for each voter and lost neighbour. Ballots are random bits. All of it runs on one thread, and seconds are those
of its processor; masks are made on all cores otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from fedvote.codecs import Binary
from fedvote.randomness import Key
from fedvote.secure import SecureTally
from fedvote.secure.answered import Answered
from fedvote.secure.client_steps import help_unmask, mask_ballot
from fedvote.secure.in_process import bytes_of, key_pair, nonce, seeded
from fedvote.secure.masks import add_masks, check_of
from fedvote.secure.messages import SignedKey, ballot_bytes, bundle_bytes, missing, write_voters
from fedvote.secure.planes import words_of
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import Session
from fedvote.secure.shamir import lagrange, recover, share
from fedvote.secure.signed_keys import Witness
from fedvote.studies.bench.stopwatch import cpu_seconds_of, one_thread
from fedvote.studies.rows import Rows, chosen

WEIGHTS, CLIENTS = 13_000_000, (31, 100, 300, 1000)
GRAPHS = {"all pairs": 10**9, "graph": 0}


def bench(only: Sequence[str] = (), clients: Sequence[int] = CLIENTS, weights: int = WEIGHTS) -> Rows:
    """A row for each number of clients and each graph; where both are the same, one."""
    graphs, rows = chosen(only, GRAPHS, "secure"), Rows()
    with one_thread():
        for K in clients:
            sessions = {name: _session(K, GRAPHS[name], weights) for name in graphs}
            degrees = {session.degree for session in sessions.values()}
            for name, session in list(sessions.items())[: len(degrees)]:
                rows.append({"clients": K, "neighbours": name, **_measure(session)})
    return rows


def _session(K: int, neighbours: int, weights: int) -> Session:
    secure = SecureTally(neighbours=neighbours)
    return Session(secure.terms("bench", {"votes": Binary(weights)}), 1, nonce(Key(0, 1)), tuple(range(K)))


def _measure(session: Session) -> dict[str, Any]:
    K, count = len(session.cohort), session.terms.count
    pairs = {client: key_pair(0, client) for client in session.cohort}
    keys = {client: SignedKey(pair.public) for client, pair in pairs.items()}
    tally = MaskedTally(session, keys)
    numbers_n = torch.randint(0, 2, (count,), dtype=torch.int8, generator=Key(0).torch("bench"))
    entropy, frames, opening = seeded(Key(0, 1), "shares"), list[bytes](), tally.opening(0)
    trained = (session.round, session.broadcast)
    ballot = partial(mask_ballot, pairs[0], 0, opening, session.terms, trained, numbers_n, entropy, Witness())
    client_seconds = cpu_seconds_of(lambda: frames.append(ballot()))
    add_seconds = cpu_seconds_of(lambda: tally.add(frames[0], 0))
    everybody, two_thirds = frozenset(session.cohort), frozenset(session.cohort[: K - K // 3])
    sealed = dict.fromkeys(session.cohort, bytes(bundle_bytes(session)))  # opening it fails, which takes as long
    request = write_voters(session, 0, keys, two_thirds, sealed)
    help_seconds = cpu_seconds_of(lambda: help_unmask(pairs[0], 0, request, session.terms, Answered(), Witness()))
    planes_MW = torch.zeros((session.bits, words_of(count)), dtype=torch.int32)
    mask_seconds = cpu_seconds_of(lambda: add_masks(planes_MW, [(1, 1), (2, -1), (3, 1)])) / 3
    lost = sum(len(missing(session, voter, two_thirds)) for voter in two_thirds)
    seeds_seconds, seeds_seconds_lost = (_seeds_seconds(session, voters) for voters in (everybody, two_thirds))
    sent = bytes_of(session, everybody)
    return {
        "of_each": session.degree, "threshold": session.threshold, "weights": count, "modulus_bits": session.bits,
        "bits_up": 8 * sent.up / (K * count), "bits_down": 8 * sent.down / (K * count),
        "ballot_megabytes": ballot_bytes(session) / 1e6,
        "client_seconds": client_seconds, "help_seconds": help_seconds,
        "add_seconds": add_seconds, "mask_seconds": mask_seconds, "seeds_seconds_third_lost": seeds_seconds_lost,
        "server_seconds": K * (add_seconds + mask_seconds + seeds_seconds),
        "server_seconds_third_lost":
            len(two_thirds) * (add_seconds + mask_seconds + seeds_seconds_lost) + lost * mask_seconds,
    }  # fmt: skip


def _seeds_seconds(session: Session, voters: frozenset[int]) -> float:
    """Seconds to put together all seeds of one voter that the tally needs."""
    helpers, seed = session.neighbours[0], 1
    places = [place for place, other in enumerate(helpers, start=1) if other in voters]
    given = dict(zip(places, share(seed, places, session.threshold, seeded(Key(0), "shares")), strict=True))

    def put_together() -> None:
        for _ in (None, *missing(session, 0, voters)):
            recover(given, session.threshold, lambda found: check_of(found) == check_of(seed))

    put_together()
    if len(voters) < len(session.cohort):
        lagrange.cache_clear()  # each voter has other helpers; if nobody is lost, all have the same
    return cpu_seconds_of(put_together)
