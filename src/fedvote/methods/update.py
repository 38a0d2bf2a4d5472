"""The base of methods with float weights: the server keeps and broadcasts one model, clients train it.

A client's update is delta = theta_start - theta_end over all weights that train, the voted ones first. It points like
the gradient, so the server subtracts it. After one SGD step it is the learning rate times the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs import Float32, FloatChanges, FloatSteps, IfChanged
from fedvote.core import Batches, Codec, Message, State, Weights
from fedvote.method import Method
from fedvote.methods.frozen_weights import TRAINS, mark_in_start, mark_of, with_frozen, without_frozen
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.training.descent import descend
from fedvote.wire import Codecs, Wire

NAMES = ("voted", "float")


@dataclass(frozen=True)
class FloatWire(Wire):
    """Float weights down, whole or as changes since the last broadcast; the method's own `uplink` up."""

    network: Network
    uplink: Codecs
    scales: tuple[str, ...] = ()
    keeps_broadcast: bool = False  # always, if the update is rounded, or some weights are frozen: they are sent once
    step: float = 0.0  # how far the server moves every weight, if equally far
    sends_models: bool = False  # whether clients send weights; otherwise updates
    down_levels: int = 0  # of the update that is broadcast; 0: float32
    sums_suffice: bool = False  # whether the server needs sums of the uplink's whole numbers alone

    def __post_init__(self) -> None:
        keeps = self.keeps_broadcast or self.down_levels > 0 or bool(self.network.frozen)
        object.__setattr__(self, "keeps_broadcast", keeps)

    @property
    def summed(self) -> Codecs:
        return self.uplink if self.sums_suffice else {}

    def up(self, down: Message, key: Key) -> Codecs:
        return self.uplink

    def down(self, reference: Message | None = None, key: Key | None = None) -> Codecs:
        def codec(name: str, count: int) -> Codec:
            last = reference[name] if reference else None
            if self.down_levels:
                return IfChanged(FloatSteps(count, self.down_levels, last), last)
            return IfChanged(FloatChanges(count, last, self.step) if self.keeps_broadcast else Float32(count), last)

        return {"voted": codec("voted", self.network.D), "float": codec("float", self.network.F)}

    def unmoved(self, down: Message) -> Message:
        trained = {"voted": down["voted"], "float": without_frozen(down["float"], self.network.trains)}
        return trained if self.sends_models else {}


@dataclass(frozen=True)
class FloatMethod(Method):
    """A method whose server keeps float weights. Subclasses define `local`, `merge` and `wire`."""

    float_only: ClassVar[bool] = True
    keeps_frozen: ClassVar[bool] = True

    def init(self, network: Network, clients: int) -> State:
        return {"voted": network.start.voted, "float": network.start.floats} | mark_in_start(network)

    def broadcast(self, state: State) -> Message:
        return {name: state[name] for name in NAMES}

    def models(self, state: State) -> dict[str, Weights]:
        weights = Weights(state["voted"], state["float"])
        return {"deployed": weights, "float": weights}

    def train(self, network: Network, down: Message, batches: Batches) -> list[Tensor]:
        """The voted (K, D) and float (K, F) weights of a stack of clients after their local steps."""
        start = [down[name].expand(batches.clients, -1) for name in NAMES]

        # theta_m^(t+1) = theta_m^(t) - eta grad f_m(theta_m^(t))
        return descend(self, network, start, batches)

    def update(self, network: Network, down: Message, batches: Batches) -> Tensor:
        """(K, N) each client's update: the broadcast weights minus its trained ones. N is `network.trainable`."""
        # delta_m^(k) = theta^(k) - theta_m^(k,tau)
        voted_KD, floats_KF = (
            down[n] - rows for n, rows in zip(NAMES, self.train(network, down, batches), strict=True)
        )
        return torch.cat([voted_KD, without_frozen(floats_KF, network.trains)], 1)


def trained_weights(state: State) -> int:
    """How many weights train."""
    return len(state["voted"]) + len(without_frozen(state["float"], state.get(TRAINS)))


def move(state: State, update: Tensor) -> State:
    """The weights of a state minus an update of those that train."""
    # theta^(k+1) = theta^(k) - delta^(k)
    D, floats_F, trains_F = len(state["voted"]), state["float"], state.get(TRAINS)
    moved = without_frozen(floats_F, trains_F) - update[D:]
    return {"voted": state["voted"] - update[:D], "float": with_frozen(floats_F, moved, trains_F)} | mark_of(state)
