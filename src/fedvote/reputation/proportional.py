"""Vote weights in proportion to reputation: Option II of Algorithm 1, as printed (Section IV-C).

The weights of a round come from the reputations before it; its credibilities only count from the next round on.
As printed, the plurality itself counts heads, whatever the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedvote.core import ConfigError, Key, State
from fedvote.quantize import plurality, tally
from fedvote.reputation.rule import Ballots, Reputation, Verdict


@dataclass(frozen=True)
class Proportional(Reputation):
    beta: float = 0.5  # how much of the old reputation stays
    start: float = 0.5  # of a client not seen before: as credible as a coin

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1; the paper has 0.5")
        if not 0 < self.start <= 1:
            raise ConfigError(f"start is {self.start}, expected a number above 0 and at most 1")

    def init(self, clients: int) -> State:
        return {"reputation": torch.full((clients,), self.start)}

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        votes, heads = ballots.votes_KD, self.heads(ballots)
        nu = memory["reputation"][ballots.clients_K]

        # lambda_m^(k) = nu_m^(k) / sum_m nu_m^(k)
        weights = nu / nu.sum()

        # w^(k+1) = sign(sum_m w_m^(k,tau)), ties broken at random, and as for the plurality that is deployed
        winner = plurality(tally(votes, heads, ballots.alphabet), ballots.alphabet, key.torch("tie", votes.device))

        # CR_m^(k+1) = 1/d sum_i 1(w_{m,i} = w_i^(k+1))
        credibility = torch.stack([(ballot == winner).float().mean() for ballot in votes])

        # nu_m^(k+1) = beta nu_m^(k) + (1 - beta) CR_m^(k+1)
        reputation = memory["reputation"].clone()
        reputation[ballots.clients_K] = self.beta * nu + (1 - self.beta) * credibility
        return Verdict(weights, heads, {"reputation": reputation})
