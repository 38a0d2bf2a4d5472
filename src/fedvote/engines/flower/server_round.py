"""The server's part of one round: `fedvote.rounds`, applied to the state before the round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fedvote.codecs import Parcel
from fedvote.core import State
from fedvote.federation import Federation, Snapshot
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import Closed, close_round, held_before, open_round, read_ballot
from fedvote.system.device import repeatable


@dataclass(frozen=True, eq=False)
class ServerRound:
    """Opens a round, reads its ballots, and closes it."""

    federation: Federation
    network: Network  # on the run's device
    before: State
    number: int
    evaluate: Callable[[Snapshot], dict[str, float]]

    @property
    def key(self) -> Key:
        return Key(self.federation.seed, self.number)

    @cached_property
    def cohort(self) -> list[int]:
        return self.federation.drawn(self.key)

    def broadcast(self, holds_reference: bool) -> bytes:
        """The frame for a client that has the last broadcast, the reference, or for one that does not."""
        return self._changes if holds_reference else self._whole

    def read(self, frame: bytes, client: int) -> Parcel:
        """The ballot in a frame; WireError if it is not this client's ballot of this round."""
        with repeatable():
            key = Key(self.federation.seed, self.number, client)
            return read_ballot(self.federation.method, self.network, self.before, frame, key)

    def close(self, ballots: Mapping[int, Parcel]) -> tuple[Closed, dict[str, float]]:
        """Count the ballots; returns the next state, and how good its models are."""
        with repeatable():
            closed = close_round(self.federation.method, self.network, self.before, ballots, self.key, len(self.cohort))
            return closed, self.evaluate(Snapshot(self.number, closed.state, {}))

    @cached_property
    def _whole(self) -> bytes:
        with repeatable():
            return open_round(self.federation.method, self.network, self.before, self.number)

    @cached_property
    def _changes(self) -> bytes:
        method = self.federation.method
        reference = held_before(method, self.before, self.number)
        with repeatable():
            return open_round(method, self.network, self.before, self.number, held=reference)
