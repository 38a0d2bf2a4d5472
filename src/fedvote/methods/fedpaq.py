"""FedPAQ: clients send their update rounded at random to a few levels of its norm. Reisizadeh et al., 2020.

The quantiser is QSGD (Alistarh et al., 2017). The update of all weights, voted and float, is one vector with one norm:

    Q(x_i) = ||x||_2 sgn(x_i) l / s,    l = s |x_i| / ||x||_2, rounded up or down at random without bias

A client sends the whole numbers sgn(x_i) l, from -s to s, and the norm as a float. The server averages what they stand
for and subtracts it. There is no step of the server's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.aggregate.mean import weighted_sum
from fedvote.codecs import Float32, Signed
from fedvote.core import Batches, Codec, ConfigError, Key, Message, State
from fedvote.methods.update import FloatMethod, move
from fedvote.network import Network

MOST_LEVELS = 2**14 - 1  # 2 s + 1 whole numbers fit the codec


@dataclass(frozen=True)
class FedPAQ(FloatMethod):
    scales: ClassVar[tuple[str, ...]] = ("norm",)

    lr: float = 0.001
    levels: int = 1  # s: values above zero, so 2 s + 1 in all; with 1, an update is -1, 0 or +1 times its norm
    coding: str = "entropy"  # or "plain": whole bits, two for s = 1, as the paper counts them

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.levels <= MOST_LEVELS:
            raise ConfigError(f"levels is {self.levels}, expected 1 to {MOST_LEVELS}; the paper has 1")
        if self.coding not in ("entropy", "plain"):
            raise ConfigError(f"coding is {self.coding!r}, expected entropy or plain")

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        update_KN = self.update(network, down, batches)
        norm_K = torch.linalg.vector_norm(update_KN, dim=1)
        rounded = [
            qsgd(update_N, norm, self.levels, key.torch("rounding", update_N.device))
            for update_N, norm, key in zip(update_KN, norm_K, keys, strict=True)
        ]
        return {"level": torch.stack(rounded), "norm": norm_K[:, None]}, memory

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        # delta = 1/K sum_m ||x_m|| level / s
        scale_K = ups["norm"][:, 0] / (self.levels * len(clients))
        return move(state, weighted_sum(scale_K, ups["level"]))

    def uplink(self, network: Network, down: Message) -> dict[str, Codec]:
        levels = Signed(network.D + network.F, self.levels, self.coding == "entropy")
        return {"level": levels, "norm": Float32(1)}


def qsgd(x: Tensor, norm: Tensor, levels: int, generator: torch.Generator) -> Tensor:
    """sgn(x_i) l: whole numbers from -s to s, which times norm / s are x on average; int16."""
    # s |x_i| / ||x||_2, and 0 where the norm is
    scaled = x.abs() * (levels / norm.clamp_min(torch.finfo(x.dtype).tiny))

    # l = floor, plus 1 with the probability of what floor cut off
    low = scaled.floor()
    up = torch.rand(x.shape, generator=generator, device=x.device) < scaled - low
    return (x.sign() * (low + up).clamp_max(levels)).to(torch.int16)
