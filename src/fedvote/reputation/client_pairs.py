"""Pairs of clients: how much the innovations of two clients agreed in the rounds in which both voted.

The server remembers two sums for each pair, of cosines and of rounds, in which older rounds fade. Their quotient is the
mean agreement. Clients outside of a round are remembered, too: they help to say which of two camps is the majority.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import State

MOST_CLIENTS = 1024  # whose pairs are remembered
KEPT = 0.5  # share of the older sums: the first rounds, in which all clients learn the same, soon stop counting
LOYAL = 0.25  # a loyal client agrees with the other camp at most this much, relative to its own camp


def no_pairs(clients: int) -> State:
    """The memory before round 1: of each pair, sums of cosines and of common rounds; of each client, its opposition."""
    columns = clients if clients <= MOST_CLIENTS else 0
    pairs = {"agreed": torch.zeros(clients, columns), "met": torch.zeros(clients, columns)}
    return {**pairs, "opposed": torch.zeros(clients)}


@dataclass(frozen=True, eq=False)
class Pairs:
    """How much the clients of a round agree, and the votes that decide which of two camps is the majority."""

    alike_nn: Tensor  # mean cosine of each pair of the round's n ballots
    heads_n: Tensor
    absent_An: Tensor  # mean cosine of each client outside of the round with each in it; NaN if they have never met
    heads_A: Tensor
    half: float  # of the round's heads
    ballots: int  # of the round, also those that were left out as forged
    sudden: bool = False  # whether a dispute is new: clients turned together, so that none is neutral
    one_layer: bool = False  # whether clients are compared in one layer alone

    def outnumber(self, camp: Tensor, others: Tensor) -> bool:
        """Whether a camp has most heads, also with the absent clients that have met both camps.

        An absent client supports the camp if it agreed with the camp, and hardly with the others.
        """
        with_A, without_A = self.absent_An[:, camp].nanmean(1), self.absent_An[:, others].nanmean(1)
        met_A = ~(with_A - without_A).isnan()
        supporters = float(self.heads_A[met_A & (without_A < LOYAL * with_A)].sum())
        return float(self.heads_n[camp].sum()) + supporters > self.half + float(self.heads_A[met_A].sum()) / 2

    def accused(self, camp: Tensor, others: Tensor) -> int:
        """How many ballots would be left out: those of the side with fewer trusted clients, or else of the smaller."""
        trusted = [float((self.heads_n[side] - 1).clamp_min(0).sum()) for side in (camp, others)]
        if trusted[0] == trusted[1]:
            return min(len(camp), len(others))
        return len(others) if trusted[0] > trusted[1] else len(camp)

    def beside_forgers(self, members: int, inside: int) -> bool:
        """Whether at least as many ballots are forged as a camp has members, and most ballots are honest even so.

        `inside`: the ballots that are neither left out nor idle, those of the camp included.
        """
        forged = self.ballots - len(self.alike_nn)
        return members <= forged and 2 * (inside - members) > self.ballots


def remembered(memory: State, clients_n: Tensor, alike_nn: Tensor) -> State:
    """The memory of pairs after a round."""
    return {
        "agreed": pair_sums(memory["agreed"], clients_n, alike_nn, KEPT),
        "met": pair_sums(memory["met"], clients_n, torch.ones(()), KEPT),
    }


def pair_sums(sum_NN: Tensor, clients_n: Tensor, now_nn: Tensor, kept: float) -> Tensor:
    """Sums over rounds, of each pair of clients, after a round of some of them.

    `now_nn`: the round's value of each pair, or one number for all pairs.
    """
    if not sum_NN.shape[1]:
        return sum_NN
    cells = clients_n[:, None].expand(-1, len(clients_n)), clients_n.expand(len(clients_n), -1)

    # s_ij <- kept s_ij + a_ij
    return sum_NN.index_put(cells, kept * sum_NN[cells] + now_nn.to(sum_NN))


def pairs_of(memory: State, clients_n: Tensor, alike_nn: Tensor, heads_N: Tensor, half: float, ballots: int) -> Pairs:
    """The pairs of a round, from the memory after it; if pairs are not remembered, those of the round alone."""
    clients_n = clients_n.cpu()
    if not memory["agreed"].shape[1]:
        nobody_An = torch.empty((0, len(clients_n)), dtype=torch.float64)
        return Pairs(alike_nn, heads_N[clients_n], nobody_An, heads_N[:0], half, ballots)
    mean_Nn = (memory["agreed"] / memory["met"]).cpu()[:, clients_n]
    absent = torch.ones(len(heads_N), dtype=torch.bool).index_fill(0, clients_n, False)
    alike_nn, absent_An = mean_Nn[clients_n].double(), mean_Nn[absent].double()
    return Pairs(alike_nn, heads_N[clients_n], absent_An, heads_N[absent], half, ballots)


def met_in(memory: State, clients_n: Tensor, rounds: int) -> bool:
    """Whether all these clients have voted together in so many rounds; false if pairs are not remembered."""
    met_NN = memory["met"]
    return bool(met_NN.shape[1]) and float(met_NN[clients_n][:, clients_n].min()) >= sum(KEPT**n for n in range(rounds))
