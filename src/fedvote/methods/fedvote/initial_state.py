"""The state of FedVote before round 1: the soft vote p^(0) and its plurality, and the memory that settings need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.methods.fedvote.trained_floats import REST
from fedvote.methods.fedvote.vote_result import TALLIES
from fedvote.methods.frozen_weights import mark_in_start, without_frozen
from fedvote.network.network import Network
from fedvote.quantize import THRESHOLD, to_level
from fedvote.reputation.reputation import MEMORY

if TYPE_CHECKING:
    from fedvote.methods.fedvote import FedVote

GIVEN = "float_given"  # in the state if the seed does not make all float weights: clients are sent them


def initial_state(method: FedVote, network: Network, clients: int) -> State:
    """All tensors that `vote_result.py` makes the next state from. A reputation rule remembers `clients` senders."""
    soft_D = start_of(network, network.start.voted)
    state = {
        "level": to_level(soft_D, method.grid),
        "levels": torch.tensor([method.grid - 1], dtype=torch.int16, device=soft_D.device),
        "plurality": THRESHOLD[method.alphabet](soft_D),
        "float": network.start.floats,
        "vote_weight": torch.zeros(clients, device=soft_D.device),
    }
    if method.reputation.by_layer:
        state["layers"] = torch.tensor([slot.size for slot in network.voted], device=soft_D.device)
    if method.deploy_rounds > 1:
        state["recent"] = soft_D.new_zeros(len(method.alphabet), len(soft_D))
    if method.carries:
        state["carried"] = torch.zeros_like(soft_D)
    if method.is_private:
        state[TALLIES] = torch.zeros(clients + 1, dtype=torch.int32, device=soft_D.device)
    if method.train_float and method.float_levels:
        state[REST] = torch.zeros_like(without_frozen(state["float"], network.trains))
    state |= mark_in_start(network) if method.train_float else {}
    if network.given:
        state[GIVEN] = torch.ones(1, dtype=torch.uint8, device=soft_D.device)
    memory = method.reputation.init(clients)
    return state | {MEMORY + name: value.to(soft_D.device) for name, value in memory.items()}


def start_of(network: Network, voted_D: Tensor) -> Tensor:
    """(D,) 2 p^(0) - 1: the initial weights, each layer divided by its standard deviation.

    Given weights as well: dividing by more loses more of a trained network, dividing by less slows an untrained one.
    """
    return network.standardise(voted_D).clamp(-0.999, 0.999)
