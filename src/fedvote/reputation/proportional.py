"""Vote weights in proportion to reputation: Option II of Algorithm 1, as printed (Section IV-C).

The reputations before a round weigh its ballots; the round's credibilities count from the next round on. As printed,
the plurality gives every client one vote.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.core import State
from fedvote.randomness import Key
from fedvote.reputation.credibility import Credibility
from fedvote.reputation.reputation import Ballots, Verdict


@dataclass(frozen=True)
class Proportional(Credibility):
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        # lambda_m^(k) = nu_m^(k) / sum_m nu_m^(k)
        nu = memory["reputation"][ballots.clients_K]
        weights = nu / nu.sum()
        return Verdict(weights, self.heads(ballots), {"reputation": self.remember(memory, ballots, key)})
