"""The server's side of one round: `fedvote.rounds`, applied to the state before the round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedvote.core import Message, State
from fedvote.engines.flower.decoders import Decoders, Reader
from fedvote.federation import Federation
from fedvote.network.network import Network
from fedvote.rounds import BallotBox, Closed, Round
from fedvote.rounds.snapshot import Snapshot
from fedvote.secure.server_steps import MaskedTally
from fedvote.system.device import repeatable
from fedvote.wire import frames


@dataclass(frozen=True, eq=False)
class ServerRound:
    """Opens a round, reads its ballots, and closes it."""

    federation: Federation
    network: Network  # on the run's device
    before: State
    number: int
    evaluate: Callable[[Snapshot], dict[str, Any]]
    decoders: Decoders
    tally: MaskedTally | None = None  # of masked ballots; None: the server sees ballots

    @cached_property
    def round(self) -> Round:
        kept = self.federation.plan.federation.kept_broadcasts
        return Round(self.federation.method, self.network, self.federation.key(self.number), kept=kept)

    @cached_property
    def cohort(self) -> list[int]:
        return self.federation.cohort(self.number)

    def broadcast(self, since: int | None, same_start: bool = True) -> bytes:
        """The frame for a client: the change since the broadcast of this round, if it has that, else the whole.

        `same_start`: whether the client makes the same start of the seed as the server; the whole is then shorter.
        """
        changes = None if since is None else self._changes(since)
        if changes is not None and since == self.number - 1:
            return changes
        whole = self._since_start if same_start else self._whole
        return whole if changes is None else min(changes, whole, key=len)

    def secret(self, client: int) -> bytes:
        """The secret that the server shares with this client alone; empty if the client rounds by its own numbers."""
        secure = self.federation.plan.secure
        private = secure.rounds_privately(between_machines=True)
        return b"" if private else self.round.key.of(client).secret

    def opening(self, client: int) -> bytes:
        """The message by which a client takes part in a secure tally; empty without one."""
        return self.tally.opening(client) if self.tally else b""

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.round, self.before) if self.tally else self.decoders.reader(self.round, self.before)

    @cached_property
    def box(self) -> BallotBox:
        return BallotBox(self.round, self.before, len(self.cohort))

    def cast(self, frame: bytes, client: int) -> None:
        """Count the ballot in a frame; WireError if it is not this client's ballot of this round."""
        if self.tally:
            self.tally.add(frame, client)
            return
        ballot = self.reader(frame, client)
        with repeatable():
            self.box.put(ballot.stack, [client])

    def cast_late(self, frame: bytes, client: int, weight: float, earlier: ServerRound) -> None:
        """Count the ballot of an earlier round; WireError if it is not this client's ballot of that round."""
        with repeatable():
            ballot = earlier.round.read_ballot(earlier.before, frame, client)
            self.box.put_late(ballot.stack, [client], weight, earlier.round, earlier.before)

    def close(self) -> tuple[Closed, dict[str, Any]]:
        """Close the round with the ballots so far; returns the closed round and its models' metrics."""
        with repeatable():
            closed = self.box.close()
            return closed, self.evaluate(Snapshot(self.number, closed.state, {}))

    @cached_property
    def _since_start(self) -> bytes:
        return self._written(None)

    @cached_property
    def _whole(self) -> bytes:
        return self._written(None, same_start=False)

    def _changes(self, since: int) -> bytes | None:
        """The frame for clients that have the broadcast of this round; None if the server does not keep that."""
        if since not in self._written_changes:
            reference = self.round.reference(self.before, since)
            self._written_changes[since] = None if reference is None else self._written(reference)
        return self._written_changes[since]

    @cached_property
    def _written_changes(self) -> dict[int, bytes | None]:
        return {}

    def _written(self, reference: Message | None, same_start: bool = True) -> bytes:
        with repeatable():
            (frame,) = frames(self.round.broadcast(self.before, reference, same_start))
            return frame
