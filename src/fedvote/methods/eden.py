"""EDEN with one bit: clients rotate their update at random and send its signs and a scale. Vargaftik et al., 2022.

With one bit EDEN is DRIVE (Vargaftik et al., 2021). Any vector looks like noise once it is rotated at random, so its
signs, rotated back, point in its direction. The scale ||x||^2 / ||R x||_1 corrects the length. The estimate is unbiased
over uniform rotations. It is nearly unbiased over R = H D, the rotation used here: D are random signs, H is a Hadamard
transform. The squared error tends to (pi / 2 - 1) ||x||^2 for long vectors.

H needs a length that is a power of two. The papers pad the whole vector, which costs up to one more bit per weight.
This file rotates blocks, each with its own scale, and pads only the last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.codecs import Binary, Float32
from fedvote.codecs.bits import unpack_bits
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.rounded_broadcast import RoundedBroadcast
from fedvote.methods.update import FloatWire, move, trained_weights
from fedvote.network.network import Network
from fedvote.quantize import threshold_binary
from fedvote.randomness import Key
from fedvote.wire import Wire


@dataclass(frozen=True)
class Eden(RoundedBroadcast):
    lr: float = 0.003
    block: int = 8192  # weights rotated together; a power of two

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 8 or self.block & (self.block - 1):
            raise ConfigError(f"block is {self.block}, expected a power of two, 8 or more")

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        ups = [
            compress(F.pad(x, (0, -len(x) % self._length(len(x)))).view(-1, self._length(len(x))), key)
            for x, key in zip(self.update(network, down, batches), keys, strict=True)
        ]
        return {
            "signs": torch.stack([signs.flatten() for signs, _ in ups]),
            "scale": torch.stack([scale for _, scale in ups]),
        }, memory

    def merge(self, state: State, key: Key) -> Merge:
        def average(ups: Message, clients: list[int]) -> State:
            size, shape = trained_weights(state), (ups["scale"].shape[1], -1)
            total = torch.zeros(ups["signs"].shape[1], device=ups["signs"].device)
            for signs, scale, client in zip(ups["signs"], ups["scale"], clients, strict=True):
                total += restore(signs.view(shape), scale, Key(key.seed, key.round, client)).flatten()
            return self.rounded(state, move(state, total[:size] / len(clients)))

        return AllAtOnce(average)

    def wire(self, network: Network) -> Wire:
        size = network.trainable
        blocks = math.ceil(size / self._length(size))
        uplink = {"signs": Binary(blocks * self._length(size)), "scale": Float32(blocks)}
        return FloatWire(network, uplink, scales=("scale",), down_levels=self.down_levels)

    def _length(self, size: int) -> int:
        """Weights in a block. A vector shorter than `block` is one block, padded to a power of two, at least 8."""
        return min(self.block, max(8, 1 << (size - 1).bit_length()))


def compress(x: Tensor, key: Key) -> tuple[Tensor, Tensor]:
    """The signs of each rotated block, and its scale."""
    # R x = H D x
    rotated = hadamard(x * random_signs(x, key))

    # S = ||x||_2^2 / ||R x||_1; S = 0 where x = 0
    scale = x.square().sum(1) / rotated.abs().sum(1).clamp_min(torch.finfo(x.dtype).tiny)
    return threshold_binary(rotated), scale


def restore(signs: Tensor, scale: Tensor, key: Key) -> Tensor:
    """The server's estimate of the blocks, from their signs and scales."""
    # R^-1 S sign(R x), with R^-1 = D H
    return hadamard(scale[:, None] * signs) * random_signs(signs, key)


def random_signs(like: Tensor, key: Key) -> Tensor:
    """The diagonal D, one sign for each number of `like`; the same on every device."""
    count = like.numel()
    return unpack_bits(key.numpy("rotation").bytes(count // 8), count, like.device).view(like.shape) * 2.0 - 1


def hadamard(x: Tensor) -> Tensor:
    """H x along the last axis, whose length is a power of two. H is symmetric and orthogonal: its own inverse."""
    size, half = x.shape[-1], 1
    while half < size:
        # H_2n = [[H_n, H_n], [H_n, -H_n]]
        a, b = x.unflatten(-1, (-1, 2, half)).unbind(-2)
        x = torch.stack([a + b, a - b], -2).flatten(-3)
        half *= 2
    return x / math.sqrt(size)
