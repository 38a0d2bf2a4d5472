"""signSGD with majority vote: clients send the signs of their update, each weight follows the majority.

Bernstein et al., 2018. Clients send the sign of the update accumulated over their local steps. With one step that is
the sign of the gradient. A client's sign(0) is +1, so a sign is one bit. A weight with a tied vote does not move: that
is the mean of a tie broken at random, without the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.codecs import Binary
from fedvote.core import Batches, Message, State
from fedvote.method import Merge
from fedvote.methods.update import FloatMethod, FloatWire, move
from fedvote.network.network import Network
from fedvote.quantize import threshold_binary
from fedvote.randomness import Key
from fedvote.settings import check_above_zero
from fedvote.wire import Wire


@dataclass(frozen=True)
class SignSGD(FloatMethod):
    lr: float = 0.003
    server_lr: float = 0.01  # how far the server moves every weight

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero(self, "server_lr")

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        return {"signs": threshold_binary(self.update(network, down, batches))}, memory

    def merge(self, state: State, key: Key) -> Merge:
        return Majority(state, self.server_lr)

    def wire(self, network: Network) -> Wire:
        # clients that keep the last broadcast receive only the signs of the step
        uplink = {"signs": Binary(network.trainable)}
        return FloatWire(network, uplink, keeps_broadcast=True, step=self.server_lr, sums_suffice=True)


class Majority(Merge):
    """A running sum of signs: messages are added as they arrive, and not kept."""

    def __init__(self, state: State, rate: float):
        self._state, self._rate = state, rate
        self._sum_N: Tensor | int = 0

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        self._sum_N = self._sum_N + ups["signs"].sum(0, dtype=torch.int32)

    def add_sums(self, sums: Message, clients: Sequence[int]) -> None:
        # K clients, of which p send +1: p - (K - p)
        self._sum_N = self._sum_N + 2 * sums["signs"][0] - len(clients)

    def close(self) -> State:
        # theta^(k+1) = theta^(k) - eta sign(sum_m sign(delta_m)), where sign(0) = 0: a tie moves nothing
        return move(self._state, self._rate * torch.as_tensor(self._sum_N).sign())
