"""Ballots of earlier rounds that count in a later one (`flower.late_rounds`): the rounds that they may belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fedvote.engines.flower.server_round import ServerRound
from fedvote.errors import WireError
from fedvote.plan import FlowerOptions


@dataclass
class LateBallots:
    """The last closed rounds, and which clients have voted in each."""

    rules: FlowerOptions
    rounds: dict[int, tuple[ServerRound, set[int]]] = field(default_factory=dict)

    def caster(self, now: ServerRound) -> Callable[[bytes, int, int], float] | None:
        """Counts a frame of an earlier round in this one, and returns its weight; None if no such frame counts."""
        if not self.rules.late_rounds:
            return None

        def cast(frame: bytes, client: int, number: int) -> float:
            age = now.number - number
            if age > self.rules.late_rounds:
                raise WireError(f"a ballot {age} rounds late, expected {self.rules.late_rounds} at most")
            if number not in self.rounds:  # rounds are kept in memory alone
                raise WireError(f"a ballot of round {number}, which this server no longer has: it was restarted since")
            earlier, voted = self.rounds[number]
            if client in voted:
                raise WireError(f"client {client} has voted in round {number} already")
            weight = self.rules.late_weight**age
            now.cast_late(frame, client, weight, earlier)
            voted.add(client)
            return float(weight)

        return cast

    def closed(self, round: ServerRound, voted: set[int]) -> None:
        """Remember a round; forget those that are too old by the next one."""
        if self.rules.late_rounds:
            self.rounds[round.number] = (round, set(voted))
            self.rounds = {n: kept for n, kept in self.rounds.items() if n > round.number - self.rules.late_rounds}
