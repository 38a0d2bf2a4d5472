"""FedAvg: clients send their float weights, the server averages them. McMahan et al., 2017; the float yardstick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from fedvote.aggregate import AGGREGATES, Aggregate, Mean
from fedvote.codecs import Float32
from fedvote.core import Batches, Codec, Message, State
from fedvote.errors import ConfigError
from fedvote.methods.update import FloatMethod
from fedvote.network.network import Network
from fedvote.randomness import Key


@dataclass(frozen=True)
class FedAvg(FloatMethod):
    lr: float = 0.001
    by_samples: bool = False  # whether clients count by the examples they say they have, or equally as in Eq. 2
    aggregate: Aggregate = field(default=Mean(), metadata={"registry": AGGREGATES})  # how models are merged

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by_samples and self.aggregate.counts_heads:
            raise ConfigError(
                f"by_samples is true, but {type(self.aggregate).__name__} counts every client once: set by_samples = "
                "false, or choose mean, geometric-median or centred-clipping, which use weights"
            )

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        voted, floats = self.train(network, down, batches)
        samples = {"samples": batches.samples_K.float()[:, None]} if self.by_samples else {}
        return {"voted": voted, "float": floats} | samples, memory

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        # theta = sum_m (n_m / n) theta_m, or what another rule makes of these shares and models
        counts = ups["samples"][:, 0].clamp_min(1) if self.by_samples else torch.ones_like(ups["voted"][:, 0])
        share_K = counts / counts.sum()
        return self.aggregate.merge(state, ups, share_K)

    def uplink(self, network: Network, down: Message, key: Key) -> dict[str, Codec]:
        models: dict[str, Codec] = {"voted": Float32(network.D), "float": Float32(network.F)}
        return models | ({"samples": Float32(1)} if self.by_samples else {})

    def check(self, cohort: int) -> None:
        self.aggregate.check(cohort)

    def unmoved(self, down: Message) -> Message:
        return down
