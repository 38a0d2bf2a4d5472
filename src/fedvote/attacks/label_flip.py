"""Label flipping: honest training on wrong labels (data poisoning, Section VI). Knows its own data alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack
from fedvote.errors import ConfigError
from fedvote.randomness import Key

Pairs = Literal["mirror", "random"]


@dataclass(frozen=True)
class LabelFlip(Attack):
    pairs: Pairs = "mirror"  # y -> C - 1 - y; or "random": random pairs of classes, the same for all attackers
    swaps: int = 0  # number of pairs that are swapped, the first ones; 0: all
    one_way: bool = False  # only the first class of each pair gets the other's label, so that they become one

    def __post_init__(self) -> None:
        if self.swaps < 0:
            raise ConfigError(f"swaps is {self.swaps}, expected a number of pairs of classes, or 0 for all")

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        half = classes // 2
        order = torch.arange(classes)
        if self.pairs == "random" and keys:
            order = torch.randperm(classes, generator=Key(keys[0].seed).torch("label pairs"))
            order = torch.cat([order[:half], order[half:].flip(0)])

        # y -> C - 1 - y, in this order of the classes
        swapped = min(self.swaps or half, half)
        first, last, partner = order[:swapped], order.flip(0)[:swapped], torch.arange(classes)
        partner[first] = last
        if not self.one_way:
            partner[last] = first
        return partner.to(labels_HB.device)[labels_HB]
