"""FedAvg: clients send their float weights, the server averages them. McMahan et al., 2017; the float yardstick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedvote.codecs import Float32
from fedvote.core import Batches, Codec, Key, Message, State, Weights
from fedvote.descent import descend
from fedvote.method import Method
from fedvote.network import Network


@dataclass(frozen=True)
class FedAvg(Method):
    lr: float = 0.001
    by_samples: bool = False  # whether clients count by their number of examples, or equally as in the paper's Eq. 2

    def init(self, network: Network, clients: int) -> State:
        return {"voted": network.start.voted, "float": network.start.floats}

    def broadcast(self, state: State) -> Message:
        return dict(state)

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        start = [down[name].expand(batches.clients, -1) for name in ("voted", "float")]

        # theta_m^(t+1) = theta_m^(t) - eta grad f_m(theta_m^(t))
        voted, floats = descend(network.loss, start, batches, self.make_optimizer)
        samples = {"samples": batches.samples_K.float()[:, None]} if self.by_samples else {}
        return {"voted": voted, "float": floats} | samples, memory

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        # theta = sum_m (n_m / n) theta_m
        counts = ups["samples"][:, 0] if self.by_samples else torch.ones_like(ups["voted"][:, 0])
        share_K = counts / counts.sum()
        return {name: share_K @ ups[name] for name in state}

    def models(self, state: State) -> dict[str, Weights]:
        weights = Weights(state["voted"], state["float"])
        return {"deployed": weights, "float": weights}

    def uplink(self, network: Network, down: Message) -> dict[str, Codec]:
        return self.downlink(network) | ({"samples": Float32(1)} if self.by_samples else {})

    def downlink(self, network: Network) -> dict[str, Codec]:
        return {"voted": Float32(network.D), "float": Float32(network.F)}
