"""The ballots of one round: one client, one vote; whatever else comes is refused, and all of it is written down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedvote.codecs import Parcel
from fedvote.engines.flower.mailbox import Answer
from fedvote.errors import FedVoteError, WireError
from fedvote.runs.config import FlowerConfig

TRIES = 3  # how often a client is asked until the next deadline, if asking again may help


class NoQuorum(FedVoteError):
    """Too few clients voted for too long. What was done so far is safe: the run can be started again."""


@dataclass
class Poll:
    """A round in which clients are voting."""

    round: int
    cohort: Sequence[int]
    rules: FlowerConfig
    read: Callable[[bytes, int], Parcel]  # WireError unless the frame is a ballot of the client in this round
    ballots: dict[int, Parcel] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)  # had their vote, and it was not one
    failed: dict[int, str] = field(default_factory=dict)  # sent no vote, and why
    failures: Counter[int] = field(default_factory=Counter)  # in this round
    hopeless: set[int] = field(default_factory=set)  # of those who failed, whom it makes no sense to ask again at once
    deadlines: int = 0  # that have passed
    second: dict[int, int] = field(default_factory=dict)  # votes beyond the first
    late: dict[int, str] = field(default_factory=dict)  # what came from earlier rounds
    heard: int = 0  # frames, counted or not
    received: int = 0  # bytes of them
    nbytes: int = 0  # of Flower's messages around them

    @property
    def need(self) -> int:
        """Ballots that close the round at once."""
        return math.ceil(self.rules.quorum * len(self.cohort) - 1e-9)

    @property
    def least(self) -> int:
        """Ballots without which the round does not close."""
        return math.ceil(self.rules.minimum * len(self.cohort) - 1e-9)

    @property
    def voted(self) -> set[int]:
        return self.ballots.keys() | self.refused.keys()

    def askable(self) -> set[int]:
        """Who has a vote left."""
        return set(self.cohort) - self.voted - self.hopeless

    def take(self, answer: Answer) -> bool:
        """Put one answer where it belongs; True if it is a ballot that counts."""
        client, frame = answer.errand.client, answer.frame
        self.heard += frame is not None
        self.received += len(frame or b"")
        self.nbytes += answer.nbytes
        if answer.errand.round != self.round:
            what = answer.fault if frame is None else "a ballot, refused: the round is over"
            self.late[client] = f"round {answer.errand.round}: {what}"
            return False
        if answer.again or client in self.voted:
            self.second[client] = self.second.get(client, 0) + 1
            return False
        if frame is None:
            self.failed[client] = answer.fault
            self.failures[client] += 1
            if not answer.mendable or self.failures[client] % TRIES == 0:
                self.hopeless.add(client)
            return False
        self.failed.pop(client, None)
        try:
            if answer.fault:
                raise WireError(answer.fault)
            self.ballots[client] = self.read(frame, client)
        except WireError as error:
            self.refused[client] = f"client {client}: {error}"
            return False
        return True

    def closes(self, waited: float, awaited: set[int]) -> bool:
        """At the quorum; at the deadline, or when nobody is left to wait for, if the minimum is there."""
        enough = len(self.ballots) >= self.least
        return len(self.ballots) >= self.need or (enough and (waited >= self.rules.deadline or not awaited))

    def stuck(self, waited: float, awaited: set[int]) -> bool:
        """Whether the round would be over, if only there were more ballots."""
        return len(self.ballots) < self.least and (waited >= self.rules.deadline or not awaited)

    def lost(self) -> bool:
        """Whether there can be no minimum any more: whoever was refused had their vote."""
        return len(self.cohort) - len(self.refused) < self.least

    def forgive(self, waited: float) -> None:
        """Whoever failed may be asked again, once a deadline: what was wrong may have been mended."""
        passed = int(waited // self.rules.deadline)
        if passed > self.deadlines:
            self.deadlines = passed
            self.hopeless.clear()

    def missing(self, present: Sequence[int], awaited: set[int]) -> dict[int, str]:
        """Who did not vote, and why."""
        why = {c: "it did not answer yet" for c in awaited} | {c: "not here" for c in self.cohort if c not in present}
        why |= self.failed | {c: "what it sent is no ballot" for c in self.refused}
        return {c: why.get(c, "not asked yet") for c in self.cohort if c not in self.ballots}

    def waiting(self, present: Sequence[int], awaited: set[int], names: Mapping[int, str]) -> str:
        """For whom the round waits, as a sentence."""
        who = {client: f"{client} {names[client]}" if client in names else str(client) for client in self.cohort}
        missing = ", ".join(f"{who[c]} ({why})" for c, why in self.missing(present, awaited).items())
        return f"round {self.round} has {len(self.ballots)} of the {self.least} ballots it needs; missing: {missing}"

    def events(self, present: Sequence[int], awaited: set[int]) -> dict[str, Any]:
        """What a line of metrics.jsonl says of the round, beyond its results; what did not happen is left out."""
        silent = {c: "no answer before the round closed" for c in awaited if c in self.cohort}
        found = {
            "absent": [c for c in self.cohort if c not in present and c not in self.voted | self.failed.keys()],
            "failed": {**silent, **self.failed},
            "refused": self.refused,
            "second": self.second,
            "late": self.late,
        }
        return {name: value for name, value in found.items() if value}
