"""Reputation as the paper's authors ran it: clients are judged by the plurality of the honest ones. An oracle.

No server could: it is told who is honest. That is all that tells it from `cut`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.reputation import Cut
from fedvote.reputation.reputation import Ballots


@dataclass(frozen=True)
class OracleCut(Cut):
    hostile: tuple[int, ...] = ()

    def heads(self, ballots: Ballots) -> Tensor:
        """One honest client, one vote in the plurality that all are judged by."""
        hostile = torch.tensor(self.hostile, dtype=torch.long, device=ballots.clients_K.device)
        return (~torch.isin(ballots.clients_K, hostile)).float()
