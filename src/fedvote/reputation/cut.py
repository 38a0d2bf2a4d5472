"""Cut: no vote below the mean reputation, vote weights in proportion to reputation above it; the paper's code.

As in the code that the paper's authors published, reputations start at 1, and a round's reputations already weigh its
own ballots. Unlike there, the plurality counts all clients: a server cannot know who is honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedvote.core import State
from fedvote.randomness import Key
from fedvote.reputation.credibility import Credibility
from fedvote.reputation.reputation import Ballots, Verdict

ROUNDING = 1e-6  # equal reputations must not fall below their own mean


@dataclass(frozen=True)
class Cut(Credibility):
    start: float = 1.0  # reputation of a new client

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        reputation = self.remember(memory, ballots, key)

        # lambda_m = nu_m 1(nu_m >= mean nu), divided by the sum
        nu = reputation[ballots.clients_K]
        kept = torch.where(nu >= nu.mean() - ROUNDING, nu, 0)
        weights_K = kept / kept.sum()
        return Verdict(weights_K, weights_K, {"reputation": reputation})

    def reasons(self, before: State, after: State, left_out: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(left_out, "the reputation is below the mean")
