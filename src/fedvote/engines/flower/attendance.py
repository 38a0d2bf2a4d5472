"""Attendance: the clients that are online, the nodes that were turned away, and the clients that came back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from flwr.serverapp import Grid

from fedvote.engines.flower.flower_internals import CONNECTION_ERRORS
from fedvote.engines.flower.roster import Roster, save_roster

SECONDS_BETWEEN_LOOKS = 3.0
NEVER = float("-inf")


@dataclass
class Attendance:
    """The clients that are online, by Flower's last answer. The roster gives newcomers their numbers."""

    grid: Grid
    folder: Path  # the run's, where the roster is kept
    roster: Roster
    clock: Callable[[], float]
    online: dict[int, int] = field(default_factory=dict)  # client -> node
    public_keys: dict[int, bytes] = field(default_factory=dict)  # client -> its node's, as PEM; empty without keys
    strangers: list[str] = field(default_factory=list)  # identities of nodes that are online but have no vote
    away: set[int] = field(default_factory=set)  # clients that did not vote in their last round
    _looked: float = NEVER

    def look(self) -> None:
        """Ask Flower which nodes are online, unless it was asked a moment ago."""
        if self.clock() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        self._looked = self.clock()
        try:
            nodes = list(self.grid.get_nodes())
        except CONNECTION_ERRORS:
            return  # as before; the mailbox decides how long the SuperLink may be away
        roster = self.roster.enrol(nodes)
        if roster != self.roster:
            self.roster = roster
            save_roster(self.folder, roster)
        self.online, self.strangers = roster.present(nodes), roster.strangers(nodes)
        by_node = {node.node_id: node.public_key for node in nodes}
        self.public_keys = {client: by_node[node] for client, node in self.online.items()}

    def unseen(self) -> float:
        """Seconds since the last look: all loops of the server look, so this is a sign of life."""
        return self.clock() - self._looked if self._looked != NEVER else 0.0

    def look_again(self) -> None:
        """Make the next look ask Flower in any case."""
        self._looked = NEVER

    def complete(self) -> bool:
        """Whether all clients of the federation are online."""
        return len(self.online) == self.roster.clients

    def after_vote(self, cohort: Collection[int], voted: Collection[int]) -> list[int]:
        """Note which clients of the cohort did not vote; returns the clients that were away and now voted."""
        returned = sorted(self.away.intersection(voted))
        self.away = (self.away - set(voted)) | (set(cohort) - set(voted))
        return returned
