"""Weights that the user froze (requires_grad=False): no client sends them, and the server leaves them as they are."""

from __future__ import annotations

from torch import Tensor

from fedvote.core import State
from fedvote.network.network import Network

TRAINS = "float_trains"  # (F,) in the state if some weights are frozen: whether each float weight trains


def mark_in_start(network: Network) -> State:
    """The part of the initial state that tells frozen weights from others; empty if none is frozen."""
    return {} if network.trains is None else {TRAINS: network.trains}


def mark_of(state: State) -> State:
    """The same part of a later state, which goes on to the next one."""
    return {name: state[name] for name in (TRAINS,) if name in state}


def without_frozen(floats: Tensor, trains_F: Tensor | None) -> Tensor:
    """The float weights that train, along the last axis."""
    return floats if trains_F is None else floats[..., trains_F]


def with_frozen(floats_F: Tensor, trained: Tensor, trains_F: Tensor | None) -> Tensor:
    """(F,) all float weights: `trained` where they train, and those of `floats_F` elsewhere."""
    return trained if trains_F is None else floats_F.masked_scatter(trains_F, trained)
