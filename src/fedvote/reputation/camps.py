"""Camps: where the ballots of a round fall apart into camps, only the camp of the majority has a vote.

Honest ballots differ from each other, by the dice of rounding and by their clients' data, but in many directions at
once. Attackers that want anything in common differ from the honest in one. So the ballots are laid out along the
direction in which they differ most, and where a gap there is wide against the spread of the camp beside it, the
others are left out. This repeats among those who stay, since attackers need not all be of one kind.

Which camp stays is settled by reputation: the share of past rounds, the latest counting most, in which a client was
among those who stayed. All start alike, so that the first round counts heads. Nothing is assumed but that honest
clients hold more than half of a round's reputation: no public data, no number of attackers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import ConfigError, Key, State
from fedvote.reputation.rule import Ballots, Reputation, Verdict

BLOCK = 2**17  # weights at a time: sums of that many votes are exact in float32
FEWEST = 3  # ballots that make a camp: the spread of fewer says nothing
ROUNDING = 1e-6  # half of the reputation is not more than half, in whatever order it is summed


@dataclass(frozen=True)
class Camps(Reputation):
    beta: float = 0.9  # how much of the old reputation stays
    gap: float = 3.0  # how many spreads of a large camp the gap beside it has to be wide

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1")
        if not 0 < self.gap < float("inf"):
            raise ConfigError(f"gap is {self.gap}, expected a number above 0")

    def init(self, clients: int) -> State:
        return {"reputation": torch.ones(clients)}

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        votes, clients = ballots.votes_KD, ballots.clients_K
        nu_K = memory["reputation"][clients]
        stays_K = self.majority(alikeness(votes), nu_K.cpu().double(), votes.shape[1]).to(nu_K)

        # nu_m <- beta nu_m + (1 - beta) 1(m stays)
        nu_K = nu_K + (1 - self.beta) * (stays_K - nu_K)

        # lambda_m = nu_m 1(m stays)
        weights = nu_K * stays_K
        return Verdict(weights, weights, {"reputation": memory["reputation"].index_copy(0, clients, nu_K)})

    def majority(self, alike_KK: Tensor, nu_K: Tensor, D: int) -> Tensor:
        """(K,) who is left when every camp has been split off that holds less than half of all reputation."""
        half = float(nu_K.sum()) * (1 + ROUNDING) / 2
        inside = torch.arange(len(nu_K))
        while len(camp := self.split(alike_KK[inside][:, inside], nu_K[inside], half, D)) < len(inside):
            inside = inside[camp]
        return torch.zeros(len(nu_K), dtype=torch.bool).index_fill(0, inside, True)

    def split(self, alike_KK: Tensor, nu_K: Tensor, half: float, D: int) -> Tensor:
        """Which of these ballots are in the camp with more than half of the reputation; all, if there are no camps."""
        everyone = torch.arange(len(nu_K))
        if len(everyone) <= FEWEST:
            return everyone

        # the ballots about their mean, along the direction u in which they differ most: J A J u = lambda u
        mean_K = alike_KK.mean(0)
        values, vectors = torch.linalg.eigh(alike_KK - mean_K - mean_K[:, None] + mean_K.mean())
        place_K = vectors[:, -1]
        order = place_K.argsort()

        # what D tosses of a coin move a place on u by: 1 / (sqrt(D) (lambda - that of a direction of mere noise))
        noise = 1 / (D**0.5 * max(float(values[-1] - values.median()), 1e-12))

        camp, widest = everyone, 1.0
        for cut in range(1, len(everyone)):
            for ins, outs in ((order[:cut], order[cut:]), (order[cut:], order[:cut])):
                if len(ins) < FEWEST or float(nu_K[ins].sum()) <= half:
                    continue

                # wide: more than gap (1 + 2 / (n - 2)) times the spread of a camp of n, whose spread may be small by
                # chance if n is small; and down to half of that if those beyond the gap were left out before
                spread = max(float(place_K[ins].std()), noise)
                enough = self.gap * (1 + 2 / (len(ins) - 2)) * (1 + float(nu_K[outs].mean())) / 2
                width = float(place_K[order[cut]] - place_K[order[cut - 1]]) / spread / enough
                if width > widest:
                    camp, widest = ins, width
        return camp


def alikeness(votes_KD: Tensor) -> Tensor:
    """(K, K) the cosine between any two ballots."""
    dots_KK = torch.zeros((len(votes_KD),) * 2, dtype=torch.float64, device=votes_KD.device)
    for block_KB in votes_KD.split(BLOCK, 1):
        values_KB = block_KB.float()
        dots_KK += values_KB @ values_KB.T
    lengths_K = dots_KK.diagonal().clamp_min(1).sqrt()
    return (dots_KK / lengths_K / lengths_K[:, None]).cpu()
