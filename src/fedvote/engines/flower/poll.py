"""The poll of one round: one client, one vote. It refuses everything else, and records everything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fedvote.engines.flower.mailbox import Reply
from fedvote.engines.flower.replies import Ballot, Malformed
from fedvote.errors import LateBallotError, WireError
from fedvote.plan import FlowerOptions

TRIES = 3  # tasks for a client before each deadline, if it fails in a way that a retry may fix


@dataclass
class Poll:
    """The ballots of an open round."""

    round: int
    cohort: Sequence[int]
    rules: FlowerOptions
    cast: Callable[[bytes, int], None]  # counts a frame; WireError unless it is this client's ballot of this round
    ballots: set[int] = field(default_factory=set)  # clients whose ballots count
    refused: dict[int, str] = field(default_factory=dict)  # client -> why its vote was refused; it gets no other
    failed: dict[int, str] = field(default_factory=dict)  # client -> why it has not voted yet
    failures: Counter[int] = field(default_factory=Counter)  # client -> number of failures in this round
    given_up: set[int] = field(default_factory=set)  # clients that are not asked again before the next deadline
    deadlines_passed: int = 0
    second: dict[int, int] = field(default_factory=dict)  # client -> number of votes beyond its first
    late: dict[int, str] = field(default_factory=dict)  # client -> its reply to a task of an earlier round
    cast_late: Callable[[bytes, int, int], float] | None = None  # frame, client, its round -> its weight; or WireError
    broadcasts: list[int] = field(default_factory=list)  # bytes of each broadcast sent
    request_bytes: int = 0  # of requests to unmask a secure tally
    task_bytes: int = 0  # of Flower's messages around the broadcasts
    frames: int = 0  # received, counted or not
    frame_bytes: int = 0
    reply_bytes: int = 0  # of Flower's messages around the frames
    least: int = 1  # ballots without which no round closes, whatever the rules say

    @property
    def quorum(self) -> int:
        """Number of ballots that closes the round at once."""
        return max(self.least, math.ceil(self.rules.quorum * len(self.cohort) - 1e-9))

    @property
    def minimum(self) -> int:
        """Number of ballots that the round needs to close."""
        return max(self.least, math.ceil(self.rules.minimum * len(self.cohort) - 1e-9))

    @property
    def voted(self) -> set[int]:
        """Clients that have used their vote."""
        return self.ballots | self.refused.keys()

    def askable(self) -> set[int]:
        """Clients that may be sent a task."""
        return set(self.cohort) - self.voted - self.given_up

    def may_count(self, reply: Reply) -> bool:
        """Whether a reply is a ballot of a client that has not voted in this round."""
        request = reply.request
        new = request.round == self.round and not reply.repeated and request.client not in self.voted
        return new and isinstance(reply.outcome, Ballot)

    def take(self, reply: Reply, retry: bool = False) -> bool:
        """Count or record a reply; True if it is a ballot that counts. `retry`: asking again may help."""
        client, outcome = reply.request.client, reply.outcome
        self.frames += isinstance(outcome, Ballot | Malformed)
        self.frame_bytes += len(outcome.frame) if isinstance(outcome, Ballot) else 0
        self.reply_bytes += reply.nbytes
        if reply.request.round != self.round:
            self.late[client] = f"round {reply.request.round}: {self._take_late(reply)}"
        elif reply.repeated or client in self.voted:
            self.second[client] = self.second.get(client, 0) + 1
        elif isinstance(outcome, Ballot):
            return self._count(client, outcome.frame)
        elif isinstance(outcome, Malformed):
            self._refuse(client, outcome.why)
        else:
            self.note_failure(client, outcome.why, retry)
        return False

    def _take_late(self, reply: Reply) -> str:
        """Count a ballot of an earlier round, if that is allowed; returns what became of it."""
        if not isinstance(reply.outcome, Ballot):
            return reply.outcome.why
        if self.cast_late is None or reply.repeated:
            return "a ballot, refused: the round is over"
        try:
            weight = self.cast_late(reply.outcome.frame, reply.request.client, reply.request.round)
        except WireError as error:
            return f"refused: {error}"
        return f"a ballot, counted with weight {weight:g}"

    def _count(self, client: int, frame: bytes) -> bool:
        try:
            self.cast(frame, client)
        except LateBallotError as error:  # the client did nothing wrong
            self.note_failure(client, str(error), retry=False)
            return False
        except WireError as error:
            self._refuse(client, str(error))
            return False
        self.ballots.add(client)
        self.failed.pop(client, None)
        return True

    def _refuse(self, client: int, why: str) -> None:
        self.refused[client] = f"client {client}: {why}"
        self.failed.pop(client, None)

    def note_failure(self, client: int, why: str, retry: bool) -> None:
        """Record that a client cannot vote now; after TRIES failures it is not asked again before the deadline."""
        self.failed[client] = why
        self.failures[client] += 1
        if not retry or self.failures[client] % TRIES == 0:
            self.given_up.add(client)

    def closes(self, waited: float, awaited: set[int]) -> bool:
        """Whether the round closes: at the quorum, or with the minimum at the deadline or once no client is awaited."""
        enough = len(self.ballots) >= self.minimum
        return len(self.ballots) >= self.quorum or (enough and (waited >= self.rules.deadline or not awaited))

    def lacks_minimum(self, waited: float, awaited: set[int]) -> bool:
        """Whether the round would close if it had the minimum."""
        return len(self.ballots) < self.minimum and (waited >= self.rules.deadline or not awaited)

    def cannot_reach_minimum(self) -> bool:
        """Whether too many votes were refused: those clients get no other."""
        return len(self.cohort) - len(self.refused) < self.minimum

    def retry_after_deadline(self, waited: float) -> None:
        """After each deadline, let failed clients be asked again: they may be repaired by now."""
        passed = int(waited // self.rules.deadline)
        if passed > self.deadlines_passed:
            self.deadlines_passed = passed
            self.given_up.clear()

    def missing(self, online: Collection[int], awaited: set[int], names: Mapping[int, str]) -> str:
        """A sentence: how many ballots the round needs, and why each client without a ballot has none."""
        why = {c: "it did not answer yet" for c in awaited} | {c: "not here" for c in self.cohort if c not in online}
        why |= self.failed | {c: "what it sent is no ballot" for c in self.refused}
        clients = ", ".join(
            f"{client} {names.get(client, '')}".rstrip() + f" ({why.get(client, 'not asked yet')})"
            for client in self.cohort
            if client not in self.ballots
        )
        return f"round {self.round} has {len(self.ballots)} of the {self.minimum} ballots it needs; missing: {clients}"
