"""The function vote of Algorithm 1: from the tallies of a round to the next state.

With `counts = "votes"` the tally replaces the soft vote. With "changes", the tally minus that of untrained ballots is
added to it, which has less noise. A client that moves a weight from w to q votes differently from its untrained ballot
with probability |q - w| / 2. So its change has a variance of at most 2 |q - w|. Its vote has a variance of 1 - q^2,
however little it learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import State
from fedvote.methods.fedvote.late_votes import LateVotes, with_late
from fedvote.quantize import (
    THRESHOLD,
    Alphabet,
    chances,
    clip,
    plurality,
    round_by_shared_random,
    soft_vote,
    tally,
    to_level,
)
from fedvote.randomness import Key

if TYPE_CHECKING:
    from fedvote.methods.fedvote import FedVote

MOST_GRID_LEVELS = 2**15  # of a soft vote: the highest level fits int16
TIE = 1e-6  # soft votes this close to a tie are one: rounding errors of float32
TALLIES = "privacy/tallies"  # (N + 1,) rounds by their number of voters, if clients blur their votes


@dataclass(frozen=True, eq=False)
class Counted:
    """The ballots of a round, as tallies: for the soft vote, and for the plurality (hard)."""

    soft_VD: Tensor
    hard_VD: Tensor
    lambda_K: Tensor  # the weight of each ballot
    clients: Sequence[int]
    late: Sequence[LateVotes] = ()  # ballots of earlier rounds, which are not in the tallies

    @property
    def weights(self) -> Tensor:
        """(K,) of all ballots, then of the late ones."""
        return torch.cat([self.lambda_K, self.lambda_K.new_tensor([ballot.weight for ballot in self.late])])

    @property
    def voters(self) -> list[int]:
        """The client of each of `weights`."""
        return [*self.clients, *(ballot.client for ballot in self.late)]


def vote(method: FedVote, state: State, key: Key, counted: Counted) -> State:
    """The function vote of Algorithm 1."""
    soft_D, weight_K = moved(method, state, key, counted), counted.weights
    level_D, levels = _rounded(method, state, soft_D, levels_of(method, counted), key)
    share_K = weight_K / weight_K.sum()
    after = {
        # p_i^(k+1) = sum_m lambda_m^(k) 1(w_{m,i}^(k,tau) = 1), kept as 2 p - 1
        "level": level_D,
        "levels": torch.full_like(state["levels"], levels - 1),
        "vote_weight": torch.zeros_like(state["vote_weight"]).index_add(
            0, torch.tensor(counted.voters, device=share_K.device), share_K
        ),
    }
    if method.carries:
        # r^(k+1) = s^(k+1) - the level that is broadcast
        after["carried"] = soft_D - clip(method.soft_levels.value(level_D, levels), method.p_min)
    if method.is_private:
        after[TALLIES] = state[TALLIES].clone()
        after[TALLIES][len(counted.clients)] += 1
    return state | after | deployed(method, state, key, counted, soft_D)


def moved(method: FedVote, state: State, key: Key, counted: Counted) -> Tensor:
    """(D,) the soft vote 2 p^(k+1) - 1, before it is rounded to levels."""
    # 2 p^(k+1) - 1 = sum_m lambda_m^(k) w_m
    soft_D = method.privacy.correct(soft_vote(counted.soft_VD, method.alphabet))
    if method.counts == "changes":
        # 2 p^(k+1) - 1 = 2 p^(k) - 1 + sum_m lambda_m^(k) (w_m - r_m)
        untrained_VD = tally_of_untrained(method, state, key, counted)
        soft_D = method.start_of_changes(state) + soft_D - soft_vote(untrained_VD, method.alphabet)
    if counted.late:
        soft_D = with_late(method, state, soft_D, len(counted.clients), counted.late)
    if (method.counts == "changes" or counted.late) and not method.carries:  # a rest has to be added before
        soft_D = soft_D.clamp(-1, 1)
    if method.bounds:
        weight_K = counted.weights
        ballots = float(weight_K.sum().square() / weight_K.square().sum())
        given = method.influence(method.soft(state), soft_D, ballots)
        soft_D = contracts.soft_votes(method.influence, given, soft_D)
    if method.carries:
        # s^(k+1) = 2 p^(k+1) - 1 + r^(k), with r^(k) the rest that the last broadcast's rounding left out
        soft_D = clip(soft_D + state["carried"], method.p_min)
    return soft_D


def deployed(method: FedVote, state: State, key: Key, counted: Counted, soft_D: Tensor) -> State:
    """The plurality; and the votes of recent rounds, if they count together."""
    by_soft_vote = method.bounds or method.counts == "changes" or bool(counted.late)  # it has more than these votes
    ties = key.torch("tie", soft_D.device)
    if method.deploy_rounds > 1:
        # t^(k+1) = (1 - 1/R) t^(k) + the shares of this round's votes
        hard_VD = chances(soft_D.clamp(-1, 1), method.alphabet) if by_soft_vote else counted.hard_VD
        recent_VD = (1 - 1 / method.deploy_rounds) * state["recent"] + hard_VD / hard_VD.sum(0)
        return {"plurality": plurality(recent_VD, method.alphabet, ties), "recent": recent_VD}
    if by_soft_vote:
        return {"plurality": likelier(soft_D, method.alphabet, key)}
    # w_i^(k+1) = sign(sum_m w_{m,i}^(k,tau)), ties broken at random
    return {"plurality": plurality(counted.hard_VD, method.alphabet, ties)}


def tally_of_untrained(method: FedVote, state: State, key: Key, counted: Counted) -> Tensor:
    """(V, D) the tally of the ballots r_m: the broadcast, rounded by each client's own random numbers."""
    soft_D = method.soft(state)
    total_VD = torch.zeros_like(counted.soft_VD)
    for weight, client in zip(counted.lambda_K, counted.clients, strict=True):
        if weight:
            votes_1D = round_by_shared_random(soft_D[None], method.alphabet, [key.of(client)])
            total_VD += tally(votes_1D, weight[None], method.alphabet)
    return total_VD


def likelier(soft_D: Tensor, alphabet: Alphabet, key: Key) -> Tensor:
    """The likelier vote of each soft vote. Ties are broken at random; sums of floats miss them by their last bits."""
    random_D = torch.rand(soft_D.shape, generator=key.torch("tie", soft_D.device), device=soft_D.device)
    return THRESHOLD[alphabet](soft_D + TIE * (2 * random_D - 1))


def _rounded(method: FedVote, state: State, soft_D: Tensor, every: int, key: Key) -> tuple[Tensor, int]:
    """The soft vote as levels, and the number of levels: `every` one that votes have, or the few that are asked for.

    If an earlier round had more or fewer voters, a soft vote that changes have moved lies between the levels of this
    round's votes. It is then rounded at random: a client alone would leave nothing of it but the sign.
    """
    changes, before = method.counts == "changes", int(state["levels"]) + 1
    if method.levels and (method.levels <= every or changes):
        return method.soft_levels.round(soft_D, key), method.levels
    if changes and before != every and method.grid not in (before, every):
        return replace(method.soft_levels, number=every, rounding="random", spacing="even").round(soft_D, key), every
    return to_level(soft_D, every), every


def levels_of(method: FedVote, counted: Counted) -> int:
    """L: the number of values that a count of equal votes can take; otherwise the grid."""
    if method.bounds or method.is_private or counted.late:
        return method.grid
    lambda_K = counted.lambda_K
    exact = (len(method.alphabet) - 1) * int(lambda_K.count_nonzero()) + 1
    return exact if bool(((lambda_K == 0) | (lambda_K == 1)).all()) and exact <= MOST_GRID_LEVELS else method.grid
