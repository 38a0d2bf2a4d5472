"""Camps: where the ballots of a round fall apart into camps, only the camp of the majority has a vote.

Honest ballots differ by the dice of rounding and by their clients' data, each in a direction of its own. Attackers
that want anything in common differ from the honest in one direction. So the ballots are laid out on two lines: by how
much they have in common with all, and along the direction in which they differ most. Where there is a gap, wide
against the spread of the camp beside it, those beyond it are left out. This repeats among those who stay, since
attackers need not all be of one kind.

Before that, whoever votes by lots that are not its own is left out. Copies of an honest ballot would make its sender
one of a camp of theirs, and the others outsiders; but the server can draw everybody's lots, and a copy shows whose it
is.

Reputation, the share of a client's rounds in which it stayed, settles which camp is the majority, lets a narrower gap
do against those who were left out before, and is the weight of those who stay. All start with the same, so that the
first round counts heads. See docs/byzantine.md for what this assumes, and what breaks it.
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

BLOCK = 2**19  # weights at a time: sums of that many votes are exact in float32
FEWEST = 3  # ballots that make a camp: the spread of fewer says nothing
LEAST = 0.25  # of a head, that the worst reputation counts for among heads
SLACK = 1e-6  # half of the heads is not more than half, in whatever order they are summed


@dataclass(frozen=True)
class Camps(Reputation):
    beta: float = 0.8  # how much of the old reputation stays
    gap: float = 3.0  # how many spreads of a large camp the gap beside it has to be wide

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1")
        if not 0 < self.gap < float("inf"):
            raise ConfigError(f"gap is {self.gap}, expected a number above 0")

    def init(self, clients: int) -> State:
        return {"reputation": torch.ones(clients)}

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        votes_KD, clients_K = ballots.votes_KD, ballots.clients_K
        nu_K = memory["reputation"][clients_K]
        heads_K = LEAST + (1 - LEAST) * nu_K.double().cpu()
        alike_KK = alikeness(votes_KD, ballots.alphabet)
        own_K = (copied_votes(ballots, alike_KK, key).fill_diagonal_(0) < COPIED).all(1)
        stays_K = self.majority(alike_KK, heads_K, votes_KD.shape[1], own_K).to(nu_K)

        # nu_m <- beta nu_m + (1 - beta) 1(m stays)
        nu_K = nu_K + (1 - self.beta) * (stays_K - nu_K)

        # lambda_m = nu_m 1(m stays)
        weights_K = nu_K * stays_K
        return Verdict(weights_K, weights_K, {"reputation": memory["reputation"].index_copy(0, clients_K, nu_K)})

    def majority(self, alike_KK: Tensor, heads_K: Tensor, D: int, own_K: Tensor | None = None) -> Tensor:
        """(K,) who stays, when all camps have split off that can; more than half of the heads in any case.

        `own_K`: who may stay, if these are that many.
        """
        half = float(heads_K.sum()) * (1 + SLACK) / 2
        stay = torch.arange(len(heads_K))
        if own_K is not None and float(heads_K[own_K].sum()) > half:
            stay = stay[own_K]
        while len(camp := self.split(alike_KK[stay][:, stay], heads_K[stay], half, D)) < len(stay):
            stay = stay[camp]
        return torch.zeros(len(heads_K), dtype=torch.bool).index_fill(0, stay, True)

    def split(self, alike_KK: Tensor, heads_K: Tensor, half: float, D: int) -> Tensor:
        """Those on the majority's side of the widest gap; all of them, if no gap is wide enough."""
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
        """How wide a gap has to be beside a camp, of which these are the places."""
        spread = max(float(inside_n.std()), noise)

        # gap (1 + 2 / (n - 2)) spread: wider beside a small camp, which may lie close by chance; times the mean head
        # outside: narrower for those who were left out before
        return self.gap * (1 + 2 / (len(inside_n) - 2)) * spread * float(heads_outside.mean())


def lines(alike_KK: Tensor, D: int) -> Iterator[tuple[Tensor, float]]:
    """Two ways to lay out ballots on a line: their places, and how far D tosses of a coin move a place."""
    mean_K = alike_KK.mean(0)

    # A u = lambda u: what they have most in common; J A J u = lambda u, J = I - 1/K: what they differ by most
    for gram_KK in (alike_KK, alike_KK - mean_K - mean_K[:, None] + mean_K.mean()):
        values_K, vectors_KK = torch.linalg.eigh(gram_KK)

        # 1 / (sqrt(D) (lambda - lambda')), with lambda' of a direction that is mere noise
        yield vectors_KK[:, -1], 1 / (D**0.5 * max(float(values_K[-1] - values_K.median()), 1e-12))


def alikeness(votes_KD: Tensor, alphabet: tuple[int, ...]) -> Tensor:
    """(K, K) the cosine between any two ballots."""
    if alphabet == BINARY and votes_KD.device.type == "cpu":  # the same numbers, many times faster
        D = votes_KD.shape[1]
        return (2 * packed.agreements(packed.pack(votes_KD, alphabet)) - D).double() / max(D, 1)
    dots_KK = torch.zeros((len(votes_KD),) * 2, dtype=torch.float64, device=votes_KD.device)
    floats_KB = torch.empty((len(votes_KD), min(BLOCK, votes_KD.shape[1])), device=votes_KD.device)
    for votes_KB in votes_KD.split(BLOCK, 1):
        block_KB = floats_KB[:, : votes_KB.shape[1]].copy_(votes_KB)
        dots_KK += block_KB @ block_KB.T
    lengths_K = dots_KK.diagonal().clamp_min(1).sqrt()
    return (dots_KK / lengths_K / lengths_K[:, None]).cpu()
