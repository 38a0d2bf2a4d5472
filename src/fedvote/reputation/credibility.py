"""Credibility and its moving average: how often a client votes with the plurality (Section IV-C)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.quantize import plurality, tally
from fedvote.randomness import Key
from fedvote.reputation.reputation import Ballots, Reputation


@dataclass(frozen=True)
class Credibility(Reputation):
    """The base of rules that use credibility. Subclasses turn reputation into vote weights."""

    beta: float = 0.5  # share of the old reputation that is kept
    start: float = 0.5  # reputation of a new client: as credible as a coin

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1; the paper has 0.5")
        if not 0 < self.start <= 1:
            raise ConfigError(f"start is {self.start}, expected a number above 0 and at most 1")

    def init(self, clients: int) -> State:
        return {"reputation": torch.full((clients,), self.start)}

    def remember(self, memory: State, ballots: Ballots, key: Key, heads_K: Tensor | None = None) -> Tensor:
        """(N,) reputations after the round; only its clients' change. `heads_K`: ballots' weights in the plurality."""
        votes, heads = ballots.votes, self.heads(ballots) if heads_K is None else heads_K

        # w^(k+1) = sign(sum_m w_m^(k,tau)); ties are broken by the same key as in the deployed plurality
        winner = plurality(tally(votes, heads, ballots.alphabet), ballots.alphabet, key.torch("tie", ballots.device))

        # CR_m^(k+1) = 1/d sum_i 1(w_{m,i}^(k,tau) = w_i^(k+1))
        credibility = torch.stack([(ballot == winner).float().mean() for ballot in ballots.rows()])

        # nu_m^(k+1) = beta nu_m^(k) + (1 - beta) CR_m^(k+1)
        nu = memory["reputation"][ballots.clients_K]
        return memory["reputation"].index_copy(0, ballots.clients_K, self.beta * nu + (1 - self.beta) * credibility)
