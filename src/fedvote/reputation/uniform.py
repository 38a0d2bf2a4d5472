"""One client, one vote: Option I of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.core import State
from fedvote.randomness import Key
from fedvote.reputation.reputation import Ballots, Reputation, Verdict


@dataclass(frozen=True)
class Uniform(Reputation):
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        return Verdict(self.heads(ballots), self.heads(ballots), memory)
