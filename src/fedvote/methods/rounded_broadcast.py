"""Float methods whose server rounds its update to a few levels, broadcasts it, and continues from the rounded update.

What rounding cuts off is added to the next update (error feedback; Seide et al., 2014; for servers, Tang et al., 2019).
Clients that have the last broadcast get the levels alone (codec 13).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.codecs.float_steps import each, exponents, moved, nearest_levels
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.methods.frozen_weights import mark_of
from fedvote.methods.update import NAMES, FloatMethod
from fedvote.network.network import Network

UNSENT = "unsent/"  # prefix of the state tensors that rounding cut off
MOST_FLOAT_LEVELS = 127


@dataclass(frozen=True)
class RoundedBroadcast(FloatMethod):
    """Subclasses call `rounded` at the end of a merge, and have a `FloatWire` with `down_levels`."""

    down_levels: int = 0  # values above zero of the update that is broadcast, 2 s + 1 in all; 0: float32

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.down_levels <= MOST_FLOAT_LEVELS:
            raise ConfigError(f"down_levels is {self.down_levels}, expected 0 (float32) or 1 to {MOST_FLOAT_LEVELS}")

    def init(self, network: Network, clients: int) -> State:
        state = super().init(network, clients)
        return state | ({UNSENT + name: torch.zeros_like(state[name]) for name in NAMES} if self.down_levels else {})

    def rounded(self, before: State, after: State) -> State:
        """`after`, a step from `before`, as clients will have it."""
        if not self.down_levels:
            return after
        state = mark_of(before)
        for name in NAMES:
            # delta = theta^(k) - theta^(k+1) + what was not sent
            start, change = before[name], before[name] - after[name] + before[UNSENT + name]
            state[name], state[UNSENT + name] = rounded_change(start, change, self.down_levels)
        return state


def rounded_change(start_N: Tensor, change_N: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    """`start - change` as codec 13 writes it with so many levels, and the rest of the change."""
    exponent_b = exponents(change_N, levels, start_N)
    step_N = each(exponent_b, len(start_N))
    level_N = nearest_levels(change_N / step_N, levels)
    return moved(start_N, exponent_b, level_N), change_N - step_N * level_N
