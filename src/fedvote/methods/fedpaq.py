"""FedPAQ: clients send their update rounded at random to a few levels of its norm. Reisizadeh et al., 2020.

The quantiser is QSGD (Alistarh et al., 2017). The update of all weights, voted and float, is one vector with one norm:

    Q(x_i) = ||x||_2 sgn(x_i) l / s,    l = s |x_i| / ||x||_2, rounded up or down at random without bias

A client sends the whole numbers sgn(x_i) l, from -s to s, and the norm as a float. The server averages what they stand
for and subtracts it. There is no step of the server's own.

The error of Q grows with the square root of how many weights share a norm: with s = 1 and 13 million of them, the mean
of 31 clients is ten times as much noise as update. So QSGD is used with buckets, stretches of a few hundred weights
that have a norm each; `bucket` is how many. A bucket of 512 costs 1/16 bit a weight for its norm.

Clients round by lots that the server can draw as well: with s = 1 a weight whose lot is high is 0 nearly for sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.codecs import EntropyVotes, Float32, Signed
from fedvote.codecs.signed import whole_numbers
from fedvote.codecs.vote_contexts import by_random_number
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.update import FloatMethod, FloatWire, move
from fedvote.network.network import Network
from fedvote.quantize import TERNARY
from fedvote.randomness import Key, as_uniform, shared_random
from fedvote.wire import Codecs, Coding, Wire

MOST_LEVELS = 2**14 - 1  # 2 s + 1 whole numbers fit the codec


@dataclass(frozen=True)
class FedPAQ(FloatMethod):
    lr: float = 0.001
    levels: int = 1  # s: values above zero, so 2 s + 1 in all; with 1, an update is -1, 0 or +1 times its norm
    bucket: int = 0  # weights that share a norm; 0: all of them, as in the paper; QSGD's own authors have 512
    coding: Coding = "entropy"  # or "plain": whole bits, two for s = 1, as the paper counts them

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.levels <= MOST_LEVELS:
            raise ConfigError(f"levels is {self.levels}, expected 1 to {MOST_LEVELS}; the paper has 1")
        if self.bucket < 0:
            raise ConfigError(f"bucket is {self.bucket}, expected 0 (one norm for all weights) or a number of weights")

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        levels, norms = [], []
        for update_N, key in zip(self.update(network, down, batches), keys, strict=True):
            norm_b = torch.linalg.vector_norm(self.buckets(update_N), dim=1)
            norms.append(norm_b)
            u_N = as_uniform(shared_random(key, len(update_N), update_N.device))
            levels.append(qsgd(update_N, self.each(norm_b, len(update_N)), self.levels, u_N))
        return {"level": torch.stack(levels), "norm": torch.stack(norms)}, memory

    def merge(self, state: State, key: Key) -> Merge:
        def average(ups: Message, clients: list[int]) -> State:
            delta_N = torch.zeros(ups["level"].shape[1], device=ups["norm"].device)
            for level_N, norm_b in zip(ups["level"], ups["norm"], strict=True):
                # delta = 1/K sum_m ||x_m|| level / s
                delta_N += self.each(norm_b / (self.levels * len(clients)), len(delta_N)) * level_N
            return move(state, delta_N)

        return AllAtOnce(average)

    def wire(self, network: Network) -> Wire:
        N = network.D + network.F
        coded, norms = self.coding == "entropy", Float32(-(-N // (self.bucket or N)))
        kind = TernaryWire if coded and self.levels == 1 else FloatWire
        return kind(network, {"level": Signed(N, self.levels, coded), "norm": norms}, scales=("norm",))

    def buckets(self, x_N: Tensor) -> Tensor:
        """(buckets, weights) the last filled up with zeros."""
        size = self.bucket or len(x_N)
        return F.pad(x_N, (0, -len(x_N) % size)).view(-1, size)

    def each(self, norm_b: Tensor, N: int) -> Tensor:
        """(N,) the norm of each weight's bucket."""
        return norm_b.repeat_interleave(self.bucket or N)[:N]


@dataclass(frozen=True)
class TernaryWire(FloatWire):
    """Levels -1, 0 and +1 are coded as ternary votes are, against the client's random numbers."""

    personal: bool = True

    def up(self, down: Message, key: Key) -> Codecs:
        numbers_N = shared_random(key, self.network.D + self.network.F, self.network.start.voted.device)
        return {**self.uplink, "level": EntropyVotes(TERNARY, *by_random_number(numbers_N))}


def qsgd(x: Tensor, norm: Tensor, levels: int, u: Tensor) -> Tensor:
    """sgn(x_i) l: whole numbers from -s to s, which times norm / s are x on average, for u drawn evenly from [0, 1)."""
    # s |x_i| / ||x||_2, and 0 where the norm is
    scaled = x.abs() * (levels / norm.clamp_min(torch.finfo(x.dtype).tiny))

    # l = floor, plus 1 with the probability of what floor cut off
    low = scaled.floor()
    up = u < scaled - low
    return (x.sign() * (low + up).clamp_max(levels)).to(whole_numbers(levels))
