"""A client's record of the lists of voters that it has answered, so that no other list gets it to reveal a ballot.

- A second list in one session would reveal both kinds of shares of one client. The same list with other bundles would
  reveal two own seeds of one client: of two ballots that it sent in one session.
- A server that was restarted repeats a round in a new session. All lists of one round are the same: the difference of
  two tallies would reveal the clients that are in one of them alone. A list that differs by enough clients would not
  help: lists that differ from helper to helper still give the tally without a single client.
- A round before the last one is over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from fedvote.errors import WireError
from fedvote.secure.session import Session

SESSIONS = 3  # of one round that a client helps in: an honest server may have to start again


@dataclass(frozen=True)
class Answered:
    """The requests that a client has answered in the last round that it helped in, one a session."""

    round: int = 0
    requests: Mapping[str, str] = field(default_factory=dict)  # session -> hash of the request
    lists: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # session -> its voters

    def answering(self, session: Session, request: bytes, voters: frozenset[int]) -> Answered:
        """With one more request; WireError if it must not be answered. The same request may come again."""
        if session.round < self.round:
            raise WireError(f"a session of round {session.round}, but this client has helped in round {self.round}")
        before = self if session.round == self.round else Answered(session.round)
        name, asked = session.id.hex(), hashlib.sha256(request).hexdigest()
        if name in before.requests:
            if before.requests[name] != asked:
                raise WireError("a second request in one session: answers to both could unmask a ballot")
            return before
        if len(before.requests) >= SESSIONS:
            raise WireError(f"another session of round {session.round}, expected at most {SESSIONS} of one round")
        for earlier in before.lists.values():
            if differing := voters ^ set(earlier):
                raise WireError(
                    f"a second tally of round {session.round}, with voters that differ by {len(differing)} from the "
                    "first, expected the same voters: the difference of the tallies reveals votes"
                )
        lists = {**before.lists, name: tuple(sorted(voters))}
        return Answered(session.round, {**before.requests, name: asked}, lists)

    def written(self) -> str:
        return json.dumps({"round": self.round, "requests": dict(self.requests), "lists": dict(self.lists)})

    @classmethod
    def read(cls, text: str) -> Answered:
        return cls(**json.loads(text))
