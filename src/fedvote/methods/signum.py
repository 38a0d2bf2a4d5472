"""SIGNUM: signSGD with a momentum on every client. Bernstein et al., 2019.

A client that skips a round keeps its momentum unchanged. The server counts as in signSGD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.methods.signsgd import SignSGD
from fedvote.network.network import Network
from fedvote.quantize import threshold_binary
from fedvote.randomness import Key


@dataclass(frozen=True)
class Signum(SignSGD):
    beta: float = 0.9  # share of the old momentum that is kept

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number from 0 to below 1")

    def memory(self, network: Network) -> State:
        return {"momentum": torch.zeros(network.trainable, device=network.start.voted.device)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        # m_m <- beta m_m + (1 - beta) delta_m
        momentum_KN = self.beta * memory["momentum"] + (1 - self.beta) * self.update(network, down, batches)
        finite_K = momentum_KN.isfinite().all(1, keepdim=True)  # a diverged round leaves no trace
        kept_KN = torch.where(finite_K, momentum_KN, memory["momentum"])
        return {"signs": threshold_binary(momentum_KN)}, {"momentum": kept_KN}
