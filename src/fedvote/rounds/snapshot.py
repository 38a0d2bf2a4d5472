"""A snapshot of a run after a round: all that the next round depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from fedvote.core import State


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The server's state and the clients' memories after a round, and the round's record."""

    round: int
    state: State = field(repr=False)
    memory: State = field(repr=False)  # of all clients, with a leading axis N
    record: dict[str, Any] = field(default_factory=dict)

    def to(self, device: torch.device) -> Snapshot:
        state, memory = ({n: t.to(device) for n, t in part.items()} for part in (self.state, self.memory))
        return Snapshot(self.round, state, memory, self.record)
