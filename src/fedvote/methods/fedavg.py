"""FedAvg: clients send their float weights, the server averages them. McMahan et al., 2017; the float baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from fedvote.aggregate import AGGREGATES, Aggregate, Mean
from fedvote.codecs import Float32, Signed
from fedvote.codecs.signed import FINEST
from fedvote.core import Batches, Codec, Message, State
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.fixed_point import MeanLevel, to_levels
from fedvote.methods.frozen_weights import TRAINS, mark_of, with_frozen, without_frozen
from fedvote.methods.rounded_broadcast import RoundedBroadcast
from fedvote.methods.update import FloatWire, move
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.wire import Codecs, Wire


@dataclass(frozen=True)
class FedAvg(RoundedBroadcast):
    lr: float = 0.001
    by_samples: bool = False  # weigh clients by the number of examples they report; false: equally, as in Eq. 2
    aggregate: Aggregate = field(default=Mean(), metadata={"registry": AGGREGATES})  # the rule that merges models
    clip: float = 0.0  # largest change of a weight, sent as a whole number of clip / 16383; 0: weights as floats

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by_samples and self.aggregate.counts_heads:
            raise ConfigError(
                f"by_samples is true, but {type(self.aggregate).__name__} counts every client once: set by_samples = "
                "false, or choose a rule that uses weights: mean, geometric-median or centred-clipping"
            )

        if not 0 <= self.clip < math.inf:
            raise ConfigError(f"clip is {self.clip}, expected 0 (floats) or a finite number above 0")
        if self.clip and (self.by_samples or not isinstance(self.aggregate, Mean)):
            raise ConfigError(
                f"clip is {self.clip}, so the server only adds up whole numbers, without by_samples and with "
                "no aggregate but mean: set by_samples = false and aggregate = mean, or clip = 0"
            )

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        if self.clip:
            return {"level": to_levels(self.update(network, down, batches), self.clip, FINEST)}, memory
        voted, floats = self.train(network, down, batches)
        samples = {"samples": batches.samples_K.float()[:, None]} if self.by_samples else {}
        return {"voted": voted, "float": without_frozen(floats, network.trains)} | samples, memory

    def merge(self, state: State, key: Key) -> Merge:
        if self.clip:
            # theta = theta - c / s times the mean level
            return MeanLevel("level", FINEST, lambda x: self.rounded(state, move(state, x * (self.clip / FINEST))))

        def average(ups: Message, clients: list[int]) -> State:
            # theta = sum_m (n_m / n) theta_m; other rules use the same shares n_m / n
            counts = ups["samples"][:, 0].clamp_min(1) if self.by_samples else torch.ones_like(ups["voted"][:, 0])
            trains_F = state.get(TRAINS)
            start = {"voted": state["voted"], "float": without_frozen(state["float"], trains_F)}
            merged = self.aggregate.merge(start, ups, counts / counts.sum())
            floats_F = with_frozen(state["float"], merged["float"], trains_F)
            return self.rounded(state, {"voted": merged["voted"], "float": floats_F} | mark_of(state))

        return AllAtOnce(average)

    def wire(self, network: Network) -> Wire:
        if self.clip:
            level = {"level": Signed(network.trainable, FINEST)}
            return FloatWire(network, level, down_levels=self.down_levels, sums_suffice=True)
        samples: dict[str, Codec] = {"samples": Float32(1)} if self.by_samples else {}
        uplink: Codecs = {"voted": Float32(network.D), "float": Float32(network.trainable - network.D), **samples}
        return FloatWire(network, uplink, sends_models=True, down_levels=self.down_levels)

    def check(self, cohort: int) -> None:
        self.aggregate.check(cohort)
