"""FedVote's float weights that train: clients send them in a few levels, the server averages them.

A client's change of 512 neighbouring weights is rounded to levels l of one step, a power of two: theta - 2^e l. The
server rounds its average in the same way before it is broadcast, and adds the rest to the next change (error feedback).
Codec 13 then writes the levels alone. Without `float_levels`, floats travel as float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedvote.aggregate.mean import weighted_sum
from fedvote.aggregate.median import median
from fedvote.core import State
from fedvote.methods.frozen_weights import TRAINS, with_frozen, without_frozen
from fedvote.methods.rounded_broadcast import UNSENT, rounded_change
from fedvote.reputation import rule_of

if TYPE_CHECKING:
    from fedvote.methods.fedvote import FedVote

FLOAT = "float"
REST = UNSENT + FLOAT


def rounded_rows(start_F: Tensor, trained_KF: Tensor, levels: int) -> Tensor:
    """(K, F) the floats that clients send; as trained if `levels` is 0."""
    if not levels:
        return trained_KF
    return torch.stack([rounded_change(start_F, start_F - row_F, levels)[0] for row_F in trained_KF])


def merged_floats(method: FedVote, state: State, floats_KF: Tensor, lambda_K: Tensor) -> State:
    """The mean; under a reputation rule the median of the clients that count: no rule judges float weights."""
    if rule_of(method) is None:
        merged_F = weighted_sum(lambda_K / lambda_K.sum(), floats_KF)
    else:
        merged_F = median(floats_KF[lambda_K > 0])
    trains_F, rest = state.get(TRAINS), {}
    if method.float_levels:
        # delta = theta^(k) - theta^(k+1) + what was not sent
        start_F = without_frozen(state[FLOAT], trains_F)
        merged_F, rest[REST] = rounded_change(start_F, start_F - merged_F + state[REST], method.float_levels)
    return {FLOAT: with_frozen(state[FLOAT], merged_F, trains_F), **rest}
