"""`cut` with an oracle: only honest clients make the plurality that judges all. A yardstick that no server can run.

It emulates how the paper's authors ran their rule. The votes of all clients are weighed, as with `cut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.randomness.attackers import draw_attackers
from fedvote.reputation.cut import Cut
from fedvote.reputation.reputation import Ballots


@dataclass(frozen=True)
class OracleCut(Cut):
    attackers: int = 0  # equal to federation.hostile; the run's seed then draws the same clients

    def init(self, clients: int) -> State:
        if not 0 <= self.attackers < clients:
            raise ConfigError(f"attackers is {self.attackers}, expected 0 to {clients - 1}, as in federation.hostile")
        return super().init(clients)

    def doubts(self, hostile: int, classes: int) -> Sequence[str]:
        told = (
            f"attackers of OracleCut is {self.attackers}, but hostile is {hostile}: it is told wrong clients, or none"
        )
        return (told,) if self.attackers != hostile else ()

    def remember(self, memory: State, ballots: Ballots, key: Key, heads_K: Tensor | None = None) -> Tensor:
        """Reputations by a plurality in which each honest client has one vote and a hostile one none."""
        drawn = draw_attackers(Key(key.seed), len(memory["reputation"]), self.attackers)
        hostile = torch.tensor(drawn, device=ballots.clients_K.device)
        return super().remember(memory, ballots, key, (~torch.isin(ballots.clients_K, hostile)).float())
