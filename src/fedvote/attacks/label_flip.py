"""Label flipping: honest training on wrong labels (data poisoning, Section VI). Knows its own data alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack
from fedvote.contracts import check_choices
from fedvote.randomness import Key

Pairs = Literal["mirror", "random"]


@dataclass(frozen=True)
class LabelFlip(Attack):
    pairs: Pairs = "mirror"  # y -> C - 1 - y; or "random": random pairs of classes, the same for all attackers

    def __post_init__(self) -> None:
        check_choices(self)

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        if self.pairs == "mirror" or not keys:
            # y -> C - 1 - y
            return classes - 1 - labels_HB
        order = torch.randperm(classes, generator=Key(keys[0].seed).torch("label pairs"))
        partner = torch.arange(classes)
        half = classes // 2
        partner[order[:half]], partner[order[half : 2 * half]] = order[half : 2 * half], order[:half]
        return partner.to(labels_HB.device)[labels_HB]
