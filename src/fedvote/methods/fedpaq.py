"""FedPAQ: clients send their update rounded at random to a few levels of its norm. Reisizadeh et al., 2020.

The quantiser is QSGD (Alistarh et al., 2017). The update of all weights, voted and float, is one vector with one norm:

    Q(x_i) = ||x||_2 sgn(x_i) l / s,    l = s |x_i| / ||x||_2, rounded up or down at random without bias

A client sends the whole numbers sgn(x_i) l, from -s to s, and the norm as a float. The server subtracts the mean of all
Q(x) from the weights. It has no learning rate of its own.

The error of Q grows with the square root of the number of weights that share a norm. With s = 1 and 13 million weights,
the mean of 31 clients has ten times more noise than update. QSGD is therefore used with buckets: every few hundred
weights have their own norm. `bucket` is their number. A bucket of 512 spends 1/16 bit per weight on its norm.

Clients round by shared random numbers. With s = 1, a weight whose number is high is almost surely 0, and codes short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.codecs import EntropyVotes, Float32, Signed
from fedvote.codecs.signed import FINEST
from fedvote.codecs.vote_contexts import by_random_number
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.fixed_point import MeanLevel, in_codec_type
from fedvote.methods.rounded_broadcast import RoundedBroadcast
from fedvote.methods.update import FloatWire, move
from fedvote.network.network import Network
from fedvote.quantize import TERNARY
from fedvote.randomness import Key, as_uniform, shared_random
from fedvote.wire import Codecs, Coding, Wire


@dataclass(frozen=True)
class FedPAQ(RoundedBroadcast):
    lr: float = 0.001
    levels: int = 1  # s, the values above zero; 2 s + 1 in all. With 1, an update is -1, 0 or +1 times its norm
    bucket: int = 0  # weights that share a norm; 0: all, as in the paper; QSGD's authors use 512
    coding: Coding = "entropy"  # or "plain": whole bits, two for s = 1, as in the paper
    clip: float = 0.0  # one scale for all clients in place of norms: larger changes are clipped; 0: a norm for each

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.levels <= FINEST:
            raise ConfigError(f"levels is {self.levels}, expected 1 to {FINEST}; the paper has 1")
        if self.bucket < 0:
            raise ConfigError(f"bucket is {self.bucket}, expected 0 (one norm for all weights) or a number of weights")
        if not 0 <= self.clip < math.inf:
            raise ConfigError(f"clip is {self.clip}, expected 0 (norms) or a finite number above 0")
        if self.clip and self.bucket:
            raise ConfigError(f"clip is {self.clip}, which is one scale for all weights: set bucket = 0, or clip = 0")

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        levels, norms = [], []
        for update_N, key in zip(self.update(network, down, batches), keys, strict=True):
            if self.clip:
                norm_b = update_N.new_tensor([self.clip])
            else:
                norm_b = torch.linalg.vector_norm(self.buckets(update_N), dim=1)
            norms.append(norm_b)
            u_N = as_uniform(shared_random(key, len(update_N), update_N.device))
            levels.append(qsgd(update_N, self.each(norm_b, len(update_N)), self.levels, u_N))
        return {"level": torch.stack(levels), **({} if self.clip else {"norm": torch.stack(norms)})}, memory

    def merge(self, state: State, key: Key) -> Merge:
        if self.clip:
            # delta = c / s times the mean level
            scale = self.clip / self.levels
            return MeanLevel("level", self.levels, lambda x: self.rounded(state, move(state, x * scale)))

        def average(ups: Message, clients: list[int]) -> State:
            delta_N = torch.zeros(ups["level"].shape[1], device=ups["norm"].device)
            for level_N, norm_b in zip(ups["level"], ups["norm"], strict=True):
                # delta = 1/K sum_m ||x_m|| level / s
                delta_N += self.each(norm_b / (self.levels * len(clients)), len(delta_N)) * level_N
            return self.rounded(state, move(state, delta_N))

        return AllAtOnce(average)

    def wire(self, network: Network) -> Wire:
        N, coded = network.trainable, self.coding == "entropy"
        kind = TernaryWire if coded and self.levels == 1 else FloatWire
        level = {"level": Signed(N, self.levels, coded)}
        if self.clip:
            return kind(network, level, down_levels=self.down_levels, sums_suffice=True)
        uplink = {**level, "norm": Float32(-(-N // (self.bucket or N)))}
        return kind(network, uplink, scales=("norm",), down_levels=self.down_levels)

    def buckets(self, x_N: Tensor) -> Tensor:
        """(buckets, weights per bucket); zeros pad the last bucket."""
        size = self.bucket or len(x_N)
        return F.pad(x_N, (0, -len(x_N) % size)).view(-1, size)

    def each(self, norm_b: Tensor, N: int) -> Tensor:
        """(N,) the norm of each weight's bucket."""
        return norm_b.repeat_interleave(self.bucket or N)[:N]


@dataclass(frozen=True)
class TernaryWire(FloatWire):
    """Codes levels -1, 0 and +1 like ternary votes, predicted from the client's shared random numbers."""

    personal: bool = True

    def up(self, down: Message, key: Key) -> Codecs:
        numbers_N = shared_random(key, self.network.trainable, self.network.start.voted.device)
        return {**self.uplink, "level": EntropyVotes(TERNARY, *by_random_number(numbers_N))}


def qsgd(x: Tensor, norm: Tensor, levels: int, u: Tensor) -> Tensor:
    """sgn(x_i) l: whole numbers from -s to s. Their mean times norm / s is x, for u drawn evenly from [0, 1)."""
    # s |x_i| / ||x||_2; 0 where the norm is 0
    scaled = x.abs() * (levels / norm.clamp_min(torch.finfo(x.dtype).tiny))

    # l = floor(.), plus 1 with a probability of the fractional part
    low = scaled.floor()
    up = u < scaled - low
    return in_codec_type(x.sign() * (low + up).clamp_max(levels), levels)
