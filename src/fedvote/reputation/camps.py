"""Camps: if the ballots of a round form clusters (camps), only the majority's camp has a vote.

Honest ballots differ by random rounding and by their clients' data, each in its own direction. Attackers with a common
aim differ from honest clients in one direction. So each ballot gets a position on two lines: how much it has in common
with all ballots, and where it lies along the direction of largest difference. If a gap on a line is wide relative to
the spread of the majority's camp, the ballots beyond it are left out. The test repeats: attackers can be of many kinds.

A first test leaves out copied ballots. Copies of one honest ballot would form a camp with its sender, and the other
honest clients would be outliers. But the server can draw every client's shared random numbers, and a copied vote shows
by whose numbers it was rounded.

A client's reputation is a moving average of the rounds in which it stayed. Reputation decides which camp is the
majority, narrows the gap needed against clients that were left out before, and is the vote weight of those who stay.
All clients start equal, so the first round counts heads. docs/byzantine.md says what this assumes and what breaks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote import packed
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation.copied_votes import COPIED, copied_votes
from fedvote.reputation.reputation import Ballots, Reputation, Verdict

BLOCK = 2**19  # weights per block: sums of so many votes are exact in float32
FEWEST = 3  # ballots in the smallest camp: the spread of fewer is meaningless
LEAST = 0.25  # heads that a client of reputation 0 counts for
SLACK = 1e-6  # exactly half of the heads is no majority, despite rounding errors of the sum


@dataclass(frozen=True)
class Camps(Reputation):
    beta: float = 0.8  # share of the old reputation that is kept
    gap: float = 3.0  # minimum gap, in standard deviations of a large majority camp

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1")
        if not 0 < self.gap < float("inf"):
            raise ConfigError(f"gap is {self.gap}, expected a number above 0")

    def init(self, clients: int) -> State:
        return {"reputation": torch.ones(clients)}

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        clients_K = ballots.clients_K
        nu_K = memory["reputation"][clients_K]
        heads_K = LEAST + (1 - LEAST) * nu_K.double().cpu()
        alike_KK = alikeness(ballots.votes, ballots.alphabet)
        original_K = (copied_votes(ballots, alike_KK, key).fill_diagonal_(0) < COPIED).all(1)
        stays_K = self.majority(alike_KK, heads_K, ballots.weights, original_K).to(nu_K)

        # nu_m <- beta nu_m + (1 - beta) 1(m stays)
        nu_K = nu_K + (1 - self.beta) * (stays_K - nu_K)

        # lambda_m = nu_m 1(m stays)
        weights_K = nu_K * stays_K
        return Verdict(weights_K, weights_K, {"reputation": memory["reputation"].index_copy(0, clients_K, nu_K)})

    def majority(self, alike_KK: Tensor, heads_K: Tensor, D: int, original_K: Tensor | None = None) -> Tensor:
        """(K,) which ballots stay after all splits: always more than half of the heads.

        `original_K`: the ballots that are no copies. Copies are left out first, if more than half of the heads remain.
        """
        half = float(heads_K.sum()) * (1 + SLACK) / 2
        stay = torch.arange(len(heads_K))
        if original_K is not None and float(heads_K[original_K].sum()) > half:
            stay = stay[original_K]
        while len(camp := self.split(alike_KK[stay][:, stay], heads_K[stay], half, D)) < len(stay):
            stay = stay[camp]
        return torch.zeros(len(heads_K), dtype=torch.bool).index_fill(0, stay, True)

    def split(self, alike_KK: Tensor, heads_K: Tensor, half: float, D: int) -> Tensor:
        """Indices of the ballots on the majority's side of the widest gap; all ballots if no gap is wide enough."""
        camp, widest = torch.arange(len(heads_K)), 1.0
        for places_K, noise in lines(alike_KK, D):
            order_K = places_K.argsort()
            for cut in range(1, len(order_K)):
                gap = float(places_K[order_K[cut]] - places_K[order_K[cut - 1]])
                for inside, outside in ((order_K[:cut], order_K[cut:]), (order_K[cut:], order_K[:cut])):
                    if len(inside) >= FEWEST and float(heads_K[inside].sum()) > half:
                        width = gap / self.enough(places_K[inside], noise, heads_K[outside])
                        if width > widest:
                            camp, widest = inside, width
        return camp

    def enough(self, inside_n: Tensor, noise: float, heads_outside: Tensor) -> float:
        """The width that a gap beside a camp must exceed; `inside_n`: the positions of the camp's ballots."""
        spread = max(float(inside_n.std()), noise)

        # gap (1 + 2 / (n - 2)) spread: wider beside a small camp, whose ballots may be close by chance
        # times the mean head outside: narrower against clients that were left out before
        return self.gap * (1 + 2 / (len(inside_n) - 2)) * spread * float(heads_outside.mean())


def lines(alike_KK: Tensor, D: int) -> Iterator[tuple[Tensor, float]]:
    """The two lines: the positions of the ballots on each, and the deviation that D coin tosses cause in a position."""
    mean_K = alike_KK.mean(0)

    # A u = lambda u: what ballots have most in common; J A J u = lambda u, J = I - 1/K: how they differ most
    for gram_KK in (alike_KK, alike_KK - mean_K - mean_K[:, None] + mean_K.mean()):
        values_K, vectors_KK = torch.linalg.eigh(gram_KK)

        # 1 / (sqrt(D) (lambda - lambda')), with lambda' the eigenvalue of a direction of pure noise
        yield vectors_KK[:, -1], 1 / (D**0.5 * max(float(values_K[-1] - values_K.median()), 1e-12))


def alikeness(votes_KD: Tensor | packed.Packed, alphabet: tuple[int, ...]) -> Tensor:
    """(K, K) the cosine between any two ballots."""
    if isinstance(votes_KD, Tensor) and alphabet == BINARY and votes_KD.device.type == "cpu":
        votes_KD = packed.pack(votes_KD, alphabet)  # the same numbers, many times faster
    if isinstance(votes_KD, packed.Packed):
        if alphabet == BINARY:
            return (2 * packed.agreements(votes_KD) - votes_KD.count).double() / max(votes_KD.count, 1)
        votes_KD = packed.unpack(votes_KD)
    dots_KK = torch.zeros((len(votes_KD),) * 2, dtype=torch.float64, device=votes_KD.device)
    floats_KB = torch.empty((len(votes_KD), min(BLOCK, votes_KD.shape[1])), device=votes_KD.device)
    for votes_KB in votes_KD.split(BLOCK, 1):
        block_KB = floats_KB[:, : votes_KB.shape[1]].copy_(votes_KB)
        dots_KK += block_KB @ block_KB.T
    lengths_K = dots_KK.diagonal().clamp_min(1).sqrt()
    return (dots_KK / lengths_K / lengths_K[:, None]).cpu()
