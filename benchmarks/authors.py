"""Reputation as the paper's authors ran it: clients are judged by the plurality of the honest ones. An oracle.

No server could: it is told who is honest. As in their published code, reputations start at 1, count in the round in
which they are earned, and below their mean are worth nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import Key, State
from fedvote.reputation import Cut
from fedvote.reputation.rule import Ballots, Verdict


@dataclass(frozen=True)
class OracleCut(Cut):
    start: float = 1.0
    hostile: tuple[int, ...] = ()

    def heads(self, ballots: Ballots) -> Tensor:
        """One honest client, one vote in the plurality that all are judged by."""
        hostile = torch.tensor(self.hostile, dtype=torch.long, device=ballots.clients_K.device)
        return (~torch.isin(ballots.clients_K, hostile)).float()

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        earned: State = {"reputation": self.remember(memory, ballots, key)}
        weights_K = self.weights(earned, ballots)
        return Verdict(weights_K, weights_K, earned)
