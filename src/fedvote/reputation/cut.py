"""A reputation below the mean has no vote, the others vote in proportion: what the paper's authors published as code.

As there, reputations start at 1 and weigh the ballots of the round in which they are earned. Unlike theirs, the
plurality that credibility is measured by counts all clients: a server cannot know who is honest.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedvote.core import State
from fedvote.randomness import Key
from fedvote.reputation.credibility import Credibility
from fedvote.reputation.reputation import Ballots, Verdict

ROUNDING = 1e-6  # equal reputations must not fall below their own mean


@dataclass(frozen=True)
class Cut(Credibility):
    start: float = 1.0  # of a client not seen before

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        reputation = self.remember(memory, ballots, key)

        # lambda_m = nu_m 1(nu_m >= mean nu), and they add up to one
        nu = reputation[ballots.clients_K]
        kept = torch.where(nu >= nu.mean() - ROUNDING, nu, 0)
        weights_K = kept / kept.sum()
        return Verdict(weights_K, weights_K, {"reputation": reputation})
