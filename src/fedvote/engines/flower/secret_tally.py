"""The server's part of a secure tally over Flower: it collects keys, opens sessions, and has their sums unmasked.

A session has the clients of the cohort whose keys are here when the round begins. A client that did not vote is asked
for its key again before its next round: it may have lost the old one. A key that other clients would refuse is refused
here, so that its client misses the round, and not all others.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from flwr.app import MessageType

from fedvote.engines.flower.asking import Asker
from fedvote.engines.flower.attendance import Attendance
from fedvote.engines.flower.mailbox import Mailbox, SendError
from fedvote.engines.flower.poll import TRIES, Poll
from fedvote.engines.flower.replies import Ballot
from fedvote.engines.flower.roster import identity_of
from fedvote.engines.flower.server_round import ServerRound
from fedvote.engines.flower.tasks import Task
from fedvote.errors import FedVoteError, WireError
from fedvote.plan import FlowerOptions
from fedvote.secure.broadcast_hash import hash_of
from fedvote.secure.messages import SignedKey
from fedvote.secure.pairwise import KeyPair
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import NONCE_BYTES, Session, Terms
from fedvote.secure.signed_keys import RosterPublicKey, Witness, read_key
from fedvote.secure.whole_numbers import to_sums


class NoKeys(FedVoteError):
    """Too few clients sent keys in time. All earlier rounds are saved: the run can be resumed."""


@dataclass
class Exchange:
    """One question to many clients, and what it took."""

    round: int
    wanted: Callable[[], set[int]]  # clients that have not answered
    request: Callable[[int], bytes]
    take: Callable[[bytes, int], None]  # takes an answer; WireError if it is none
    tries: Counter[int] = field(default_factory=Counter)
    up: int = 0  # bytes of answers
    down: int = 0  # bytes of requests


@dataclass
class SecretTally:
    terms: Terms
    asker: Asker
    rules: FlowerOptions
    attendance: Attendance
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    keys: dict[int, SignedKey] = field(default_factory=dict)
    mailbox: Mailbox = field(init=False)
    _key_bytes: int = 0  # in this round

    def __post_init__(self) -> None:
        shared = self.asker.mailbox
        self.mailbox = Mailbox(shared.grid, shared.limit, informed=shared.informed)

    def open(self, round: ServerRound) -> tuple[ServerRound, Poll]:
        """The round and the poll of a session: of the clients that have sent keys."""
        cohort = self._with_keys(round.number, round.cohort)
        start = hash_of(round.round.method.broadcast(round.before))
        session = Session(self.terms, round.number, os.urandom(NONCE_BYTES), tuple(cohort), start)
        round = replace(round, tally=MaskedTally(session, {client: self.keys[client] for client in cohort}))
        absent = sorted(self.attendance.online.keys() & set(round.cohort) - set(cohort))
        poll = Poll(round.number, cohort, self.rules, round.cast, least=session.fewest)
        why = {True: "its key for the secure tally is not signed", False: "it sent no key for the secure tally"}
        poll.failed = {client: why[client in self.keys] for client in absent}
        return round, poll

    def _with_keys(self, round: int, cohort: Sequence[int]) -> list[int]:
        """The clients that have sent keys; NoKeys if too few did before the patience is over."""
        least = max(self.terms.minimum, math.ceil(self.rules.minimum * len(cohort) - 1e-9))
        began = self.clock()

        def here() -> list[int]:
            """Those with signed keys, if they are enough: clients that check signatures refuse all others."""
            found = sorted(set(cohort) & self.keys.keys())
            signed = [client for client in found if self.keys[client].signature]
            return signed if len(signed) >= least else found

        asked = Exchange(round, lambda: set(cohort) - self.keys.keys(), lambda _: b"", self._take_key)
        while True:
            self._exchange(asked, lambda: len(here()) >= least, self.rules.grace)
            if len(here()) >= least:
                break
            if self.clock() - began >= self.rules.patience:
                raise NoKeys(
                    f"round {round} has keys of {len(here())} clients, expected {least} or more for a secure tally; "
                    "flower.patience is over: start the run again when they are back"
                )
            asked.tries.clear()
            self.sleep(self.rules.poll)
        self._key_bytes = asked.up
        return here()

    def close(self, round: ServerRound, poll: Poll) -> None:
        """Unmask the tally and put it into the round's box. If it cannot be unmasked, nobody counts."""
        tally = round.tally
        assert tally is not None
        asked = Exchange(
            round.number, lambda: set(tally.session.cohort) - tally.helpers, tally.request, tally.take_shares
        )
        voters = sorted(tally.voters)
        try:
            tally.session.check_voters(voters)
            self._exchange(asked, lambda: not tally.lacking(), 0)
            codecs = round.round.wire.summed
            sums = to_sums(tally.sums(), codecs, len(voters))
            device = round.network.start.voted.device
            round.box.put_sums({name: value.to(device) for name, value in sums.items()}, voters)
        except WireError as error:
            poll.refused |= {client: f"client {client}: not counted, since {error}" for client in voters}
        poll.refused |= tally.wrong
        poll.frame_bytes += asked.up + self._key_bytes
        poll.request_bytes += asked.down
        for client in set(tally.session.cohort) - tally.voters:
            self.keys.pop(client, None)

    def _take_key(self, frame: bytes, client: int) -> None:
        key = read_key(frame, client)
        KeyPair.draw(os.urandom).secret_with(key.public)  # or WireError
        Witness().check(self.terms.run, {**self.keys, client: key})
        if key.signature and (pem := self.attendance.public_keys.get(client)):
            Witness(_roster_of(pem)).check(self.terms.run, {client: key})
        self.keys[client] = key

    def _exchange(self, asked: Exchange, is_enough: Callable[[], bool], grace: float) -> None:
        """Ask and hear until all have answered, or enough and no other for a grace, or nobody can, or the deadline."""
        began = heard_at = self.clock()
        while asked.wanted() and self.clock() - began < self.rules.deadline:
            self.attendance.look()
            for client in sorted(asked.wanted() & self.attendance.online.keys() - self.mailbox.awaited(asked.round)):
                self._send(asked, client)
            heard = self._hear(asked)
            heard_at = self.clock() if heard else heard_at
            if is_enough() and self.clock() - heard_at >= grace:
                break
            awaited = self.mailbox.awaited(asked.round)
            if not awaited and all(asked.tries[client] >= TRIES for client in asked.wanted()):
                break
            if not heard:
                self.sleep(self.rules.poll)
        self.mailbox.forget()

    def _send(self, asked: Exchange, client: int) -> None:
        if asked.tries[client] >= TRIES:
            return
        asked.tries[client] += 1
        task = Task(self.asker.problem, asked.round, client, asked.request(client))
        try:
            self.mailbox.send(task, self.attendance.online[client], self.rules.deadline, MessageType.QUERY)
            asked.down += len(task.broadcast)
        except SendError:
            self.attendance.look_again()

    def _hear(self, asked: Exchange) -> bool:
        """Take all new answers; True if one of them was one."""
        taken = False
        for reply in self.mailbox.collect():
            if not isinstance(reply.outcome, Ballot) or reply.request.round != asked.round or reply.repeated:
                self.attendance.look_again()
                continue
            try:
                asked.take(reply.outcome.frame, reply.request.client)
                asked.up += len(reply.outcome.frame)
                taken = True
            except WireError:
                asked.tries[reply.request.client] = TRIES
        return taken


def _roster_of(pem: bytes) -> dict[str, RosterPublicKey]:
    """A roster of one node, by its public key; WireError if it is none that signs."""
    try:
        public = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise WireError(f"a signed key of a node whose own public key cannot be read ({error})") from error
    return {identity_of(public): cast(RosterPublicKey, public)}
