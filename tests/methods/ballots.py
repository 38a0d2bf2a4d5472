"""Rounds of FedVote on ballots that a test writes down."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fedvote import FedVote
from fedvote.core import State
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import merge, three_weights

SOFT = 0.998  # 2 p - 1 for p = 1 - 0.001


def merged(
    method: FedVote, ballots: Sequence[Sequence[int]], clients: Sequence[int], state: State | None = None, N: int = 4
) -> State:
    before = method.init(three_weights(), N) if state is None else state
    return merge(method, before, {"votes": torch.tensor(ballots, dtype=torch.int8)}, clients, Key(0, 1))


def share(state: State) -> Tensor:
    """p, before it is clipped."""
    return state["level"].double() / int(state["levels"])


def wide(D: int) -> Network:
    return Network(nn.Sequential(nn.Linear(D, 1, bias=False), nn.Linear(1, 2, bias=False)))
