"""Late ballots: votes of an earlier round that arrive after it closed, and count in this one.

A late ballot w was cast on an earlier broadcast. What its client learned there is the difference to r, the ballot of a
client that learns nothing from the same broadcast with the same random numbers. So it counts in this round as the vote
of a client that starts from this round's broadcast and learns the same: 2 p - 1 + w - r, with less weight the later it
is. Buffered asynchronous aggregation does this with floats (Nguyen et al., FedBuff, AISTATS 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from fedvote.core import State
from fedvote.packed import Packed, unpack
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key

if TYPE_CHECKING:
    from fedvote.methods.fedvote import FedVote


@dataclass(frozen=True, eq=False)
class LateVotes:
    """A late ballot, with the state and the key of the round that it was cast in."""

    client: int
    weight: float  # of an ordinary ballot: 1
    votes: Packed
    state: State
    key: Key

    def change(self, method: FedVote) -> Tensor:
        """(D,) w - r: how far its votes depart from those of an untrained client."""
        soft_1D = method.soft(self.state)[None]
        untrained_1D = round_by_shared_random(soft_1D, method.alphabet, [self.key.of(self.client)])
        return unpack(self.votes)[0].float() - untrained_1D[0].float()


def with_late(method: FedVote, state: State, mean_D: Tensor, ballots: int, late: Sequence[LateVotes]) -> Tensor:
    """(D,) the soft vote of so many ballots, and of late ones; it may lie beyond ±1."""
    start_D = method.start_of_changes(state)
    total_D, weight = ballots * mean_D, float(ballots)
    for ballot in late:
        # sum_m w_m + sum_l lambda_l (2 p - 1 + w_l - r_l)
        total_D = total_D + ballot.weight * (start_D + ballot.change(method))
        weight += ballot.weight
    return total_D / weight
