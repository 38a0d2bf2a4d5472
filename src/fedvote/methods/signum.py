"""SIGNUM: signSGD with momentum, which every client keeps for itself. Bernstein et al., 2019.

A client that is not in a round keeps its momentum as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedvote.codecs import Binary
from fedvote.core import Batches, Codec, ConfigError, Key, Message, State
from fedvote.methods.signsgd import majority
from fedvote.methods.update import FloatMethod, check_above_zero, move
from fedvote.network import Network
from fedvote.quantize import threshold_binary


@dataclass(frozen=True)
class Signum(FloatMethod):
    lr: float = 0.003
    server_lr: float = 0.01  # by how much the server moves every weight
    beta: float = 0.9  # how much of the old momentum stays

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above_zero(server_lr=self.server_lr)
        if not 0 <= self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number from 0 to below 1")

    def memory(self, network: Network) -> State:
        return {"momentum": torch.zeros(network.D + network.F, device=network.start.voted.device)}

    @property
    def step(self) -> float:
        return self.server_lr

    @property
    def keeps_broadcast(self) -> bool:
        return True  # to be told the signs alone

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        # m_m <- beta m_m + (1 - beta) delta_m
        momentum_KN = self.beta * memory["momentum"] + (1 - self.beta) * self.update(network, down, batches)
        return {"signs": threshold_binary(momentum_KN)}, {"momentum": momentum_KN}

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        # theta^(k+1) = theta^(k) - eta sign(sum_m sign(m_m))
        return move(state, self.server_lr * majority(ups["signs"]))

    def uplink(self, network: Network, down: Message) -> dict[str, Codec]:
        return {"signs": Binary(network.D + network.F)}
