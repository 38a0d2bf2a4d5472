"""A reputation below the mean has no vote, the others vote in proportion: what the paper's authors published as code.

Unlike theirs, the plurality that credibility is measured by counts all clients: a server cannot know who is honest.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import Key, State
from fedvote.reputation.credibility import Credibility
from fedvote.reputation.rule import Ballots, Verdict

ROUNDING = 1e-6  # equal reputations must not fall below their own mean


@dataclass(frozen=True)
class Cut(Credibility):
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        weights_K = self.weights(memory, ballots)
        return Verdict(weights_K, weights_K, {"reputation": self.remember(memory, ballots, key)})

    @staticmethod
    def weights(memory: State, ballots: Ballots) -> Tensor:
        nu = memory["reputation"][ballots.clients_K]
        kept = torch.where(nu >= nu.mean() - ROUNDING, nu, 0)
        return kept / kept.sum()
