"""The end of a simulated round under a secure tally: ballots are masked, added and unmasked, and every byte counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from fedvote.core import State
from fedvote.errors import WireError
from fedvote.federation import Federation
from fedvote.randomness import Key
from fedvote.rounds import BallotBox, Closed, Round, refusals
from fedvote.secure import SecureTally
from fedvote.secure.broadcast_hash import hash_of
from fedvote.secure.in_process import KEY_MESSAGE_BYTES, Sent, bytes_of, key_pair, nonce, seeded, tally
from fedvote.secure.session import Session
from fedvote.secure.shamir import Entropy
from fedvote.secure.whole_numbers import to_sums, to_vector
from fedvote.wire import Delivery


def private(key: Key) -> Key:
    """A client's key with a secret that nobody else has: it rounds by numbers of its own."""
    return replace(key, secret=os.urandom(len(key.secret)))


def close_unseen(
    federation: Federation, secure: SecureTally, round: Round, state: State, deliveries: Mapping[int, Delivery]
) -> tuple[Closed, Sent]:
    """Close a round whose server learns the tally of the deliveries that are ballots, and no delivery."""
    refused = refusals(deliveries)
    voters = [client for client in sorted(deliveries) if client not in refused]
    codecs, box = round.wire.summed, BallotBox(round, state, len(deliveries))
    terms = secure.terms(f"simulated {federation.plan.seed}", codecs)
    sent = Sent(0, 0)
    try:
        session = Session(terms, round.key.round, nonce(round.key), tuple(sorted(deliveries)), hash_of(box.down))
        sent = bytes_of(session, frozenset(voters))
        session.check_voters(voters)
        ballots = ((client, to_vector(deliveries[client].message, codecs)) for client in voters)
        if secure.count_only:
            numbers_n = sum((numbers_n for _, numbers_n in ballots), torch.zeros((), dtype=torch.int32))
        else:
            pairs = {client: key_pair(federation.plan.seed, client) for client in session.cohort}
            shares = partial(_shares, federation.plan.seed, round.key.round)
            numbers_n, sent = tally(session, ballots, pairs, shares, device=round.network.start.voted.device)
        box.put_sums(to_sums(numbers_n, codecs, len(voters)), voters)
    except WireError as error:
        refused |= {client: f"client {client}: not counted, since {error}" for client in voters}
    closed = box.close()
    keys = KEY_MESSAGE_BYTES * len(federation.owned) if round.key.round == 1 else 0
    return replace(closed, refused={**refused, **closed.refused}), Sent(sent.up + keys, sent.down)


def _shares(seed: int, round: int, client: int) -> Entropy:
    return seeded(Key(seed, round, client), "shares")
