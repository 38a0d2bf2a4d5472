"""Colluders: all hostile clients send one common message. Knows the messages of the hostile clients, no others.

Each first makes up its mind as in a simpler attack, the intention. Then all send the plurality of their ballots, or
the mean of their weights: without the noise of one client's rounding, and word for word the same, so that they agree
with each other more than honest clients do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import consensus
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.random import Random
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.randomness import Key

INTENTIONS: dict[str, type[Attack]] = {"inverse": Inverse, "label-flip": LabelFlip, "random": Random}


@dataclass(frozen=True)
class Colluders(Attack):
    joint: ClassVar[bool] = True
    intention: Attack = field(default=Inverse(), metadata={"registry": INTENTIONS})  # what each would do alone

    def __post_init__(self) -> None:
        if self.intention.omniscient:
            raise ConfigError(
                f"colluders know no honest message, which their intention {self.intention} needs; "
                f"expected one of: {', '.join(INTENTIONS)}"
            )

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.intention.poison(labels_HB, classes, keys)

    def tamper(self, seen: Seen) -> Message:
        meant = self.intention.tamper(seen)
        return meant | {n: consensus(meant[n], seen.shared).expand_as(meant[n]) for n in seen.bulk}
