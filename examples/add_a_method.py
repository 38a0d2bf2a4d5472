"""TernGrad (Wen et al., 2017), a method that is not in the package: updates as -1, 0 or +1 times their largest entry.

fedvote run quickstart --set method=examples/add_a_method.py:TernGrad
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedvote.codecs import Float32, Ternary
from fedvote.core import Batches, Message, State
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.update import FloatMethod, FloatWire, move
from fedvote.network.network import Network
from fedvote.quantize import TERNARY, round_stack
from fedvote.randomness import Key
from fedvote.wire import Wire


@dataclass(frozen=True)
class TernGrad(FloatMethod):
    lr: float = 0.001
    server_lr: float = 1.0

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        delta_KN = self.update(network, down, batches)
        scale_K1 = delta_KN.abs().amax(1, keepdim=True).clamp_min(1e-30)
        # t_i = sign(delta_i) with probability |delta_i| / s, else 0
        generators = [key.torch("terngrad", delta_KN.device) for key in keys]
        return {"signs": round_stack(delta_KN / scale_K1, TERNARY, generators), "scale": scale_K1}, memory

    def merge(self, state: State, key: Key) -> Merge:
        # theta^(k+1) = theta^(k) - eta / K sum_m s_m t_m
        return AllAtOnce(lambda ups, clients: move(state, self.server_lr * (ups["scale"] * ups["signs"]).mean(0)))

    def wire(self, network: Network) -> Wire:
        uplink = {"signs": Ternary(network.trainable), "scale": Float32(1)}
        return FloatWire(network, uplink, scales=("scale",))
