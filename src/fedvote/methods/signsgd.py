"""signSGD with majority vote: clients send the signs of their update, each weight moves as most of them say.

Bernstein et al., 2018. The sign is that of the update accumulated over the local steps; with one step it is the sign
of the gradient. As everywhere here, sign(0) is +1, so that a sign is one bit. Where as many say up as down the weight
stays: the mean of a tie broken at random, without its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.codecs import Binary
from fedvote.core import Batches, Codec, Message, State
from fedvote.methods.update import FloatMethod, check_above_zero, move
from fedvote.network.network import Network
from fedvote.quantize import threshold_binary
from fedvote.randomness import Key


@dataclass(frozen=True)
class SignSGD(FloatMethod):
    lr: float = 0.003
    server_lr: float = 0.01  # by how much the server moves every weight

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero(server_lr=self.server_lr)

    @property
    def step(self) -> float:
        return self.server_lr

    @property
    def keeps_broadcast(self) -> bool:
        return True  # to be told the signs alone

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        return {"signs": threshold_binary(self.update(network, down, batches))}, memory

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        # theta^(k+1) = theta^(k) - eta sign(sum_m sign(delta_m))
        return move(state, self.server_lr * majority(ups["signs"]))

    def uplink(self, network: Network, down: Message, key: Key) -> dict[str, Codec]:
        return {"signs": Binary(network.D + network.F)}


def majority(signs_KN: Tensor) -> Tensor:
    """The sign that most clients sent, 0 on a tie."""
    return signs_KN.sum(0, dtype=torch.int32).sign()
