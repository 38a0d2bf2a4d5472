"""The poll of one round: one client, one vote. Anything else is refused, and all of it is written down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fedvote.engines.flower.mailbox import Reply
from fedvote.engines.flower.replies import Ballot, Malformed
from fedvote.errors import WireError
from fedvote.plan import FlowerOptions
from fedvote.wire import Delivery

TRIES = 3  # tasks that a client gets before each deadline, if it fails in a way that a retry may mend


@dataclass
class Poll:
    """The ballots of a round that is open."""

    round: int
    cohort: Sequence[int]
    rules: FlowerOptions
    read: Callable[[bytes, int], Delivery]  # WireError unless the frame is this client's ballot of this round
    ballots: dict[int, Delivery] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)  # what was wrong with a client's vote; it has no other
    failed: dict[int, str] = field(default_factory=dict)  # why a client has not voted so far
    failures: Counter[int] = field(default_factory=Counter)  # of each client in this round
    given_up: set[int] = field(default_factory=set)  # clients that are not asked again before the next deadline
    deadlines_passed: int = 0
    second: dict[int, int] = field(default_factory=dict)  # votes of a client beyond its first
    late: dict[int, str] = field(default_factory=dict)  # replies to tasks of earlier rounds
    broadcasts: list[int] = field(default_factory=list)  # bytes of each that was sent
    task_bytes: int = 0  # of Flower's messages around them
    frames: int = 0  # received, counted or not
    frame_bytes: int = 0
    reply_bytes: int = 0  # of Flower's messages around them

    @property
    def quorum(self) -> int:
        """Ballots that close the round at once."""
        return math.ceil(self.rules.quorum * len(self.cohort) - 1e-9)

    @property
    def minimum(self) -> int:
        """Ballots without which the round does not close."""
        return math.ceil(self.rules.minimum * len(self.cohort) - 1e-9)

    @property
    def voted(self) -> set[int]:
        """Clients that have used their vote."""
        return self.ballots.keys() | self.refused.keys()

    def askable(self) -> set[int]:
        """Clients that may be sent a task."""
        return set(self.cohort) - self.voted - self.given_up

    def take(self, reply: Reply, retry: bool = False) -> bool:
        """Put a reply where it belongs; True if it is a ballot that counts. `retry`: asking again may help."""
        client, outcome = reply.request.client, reply.outcome
        self.frames += isinstance(outcome, Ballot | Malformed)
        self.frame_bytes += len(outcome.frame) if isinstance(outcome, Ballot) else 0
        self.reply_bytes += reply.nbytes
        if reply.request.round != self.round:
            what = "a ballot, refused: the round is over" if isinstance(outcome, Ballot) else outcome.why
            self.late[client] = f"round {reply.request.round}: {what}"
        elif reply.repeated or client in self.voted:
            self.second[client] = self.second.get(client, 0) + 1
        elif isinstance(outcome, Ballot):
            return self._count(client, outcome.frame)
        elif isinstance(outcome, Malformed):
            self._refuse(client, outcome.why)
        else:
            self._note_failure(client, outcome.why, retry)
        return False

    def _count(self, client: int, frame: bytes) -> bool:
        try:
            ballot = self.read(frame, client)
        except WireError as error:
            self._refuse(client, str(error))
            return False
        self.ballots[client] = ballot
        self.failed.pop(client, None)
        return True

    def _refuse(self, client: int, why: str) -> None:
        self.refused[client] = f"client {client}: {why}"
        self.failed.pop(client, None)

    def _note_failure(self, client: int, why: str, retry: bool) -> None:
        self.failed[client] = why
        self.failures[client] += 1
        if not retry or self.failures[client] % TRIES == 0:
            self.given_up.add(client)

    def closes(self, waited: float, awaited: set[int]) -> bool:
        """At the quorum; with the minimum also at the deadline, or when no client is awaited any more."""
        enough = len(self.ballots) >= self.minimum
        return len(self.ballots) >= self.quorum or (enough and (waited >= self.rules.deadline or not awaited))

    def lacks_minimum(self, waited: float, awaited: set[int]) -> bool:
        """Whether only the minimum keeps the round from closing."""
        return len(self.ballots) < self.minimum and (waited >= self.rules.deadline or not awaited)

    def cannot_reach_minimum(self) -> bool:
        """Whether too many were refused: they have no other vote."""
        return len(self.cohort) - len(self.refused) < self.minimum

    def retry_after_deadline(self, waited: float) -> None:
        """After each deadline, ask again whoever failed: what was wrong may have been mended."""
        passed = int(waited // self.rules.deadline)
        if passed > self.deadlines_passed:
            self.deadlines_passed = passed
            self.given_up.clear()

    def missing(self, online: Collection[int], awaited: set[int], names: Mapping[int, str]) -> str:
        """How many ballots the round still needs, and why which client has not voted, as a sentence."""
        why = {c: "it did not answer yet" for c in awaited} | {c: "not here" for c in self.cohort if c not in online}
        why |= self.failed | {c: "what it sent is no ballot" for c in self.refused}
        clients = ", ".join(
            f"{client} {names.get(client, '')}".rstrip() + f" ({why.get(client, 'not asked yet')})"
            for client in self.cohort
            if client not in self.ballots
        )
        return f"round {self.round} has {len(self.ballots)} of the {self.minimum} ballots it needs; missing: {clients}"
