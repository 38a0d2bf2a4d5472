"""Colluders: all hostile clients send one common message. Knows the messages of the hostile clients, no others.

Each attacker first forges a message by a simpler attack, the intention. Then all send the plurality of these ballots,
or the mean of these weights. That removes the rounding noise of single clients. The messages are identical, so
attackers agree with each other more than honest clients do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import consensus
from fedvote.attacks.composite import Composite
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.random import Random
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.randomness import Key

INTENTIONS: dict[str, type[Attack]] = {"inverse": Inverse, "label-flip": LabelFlip, "random": Random}


@dataclass(frozen=True)
class Colluders(Composite):
    joint: ClassVar[bool] = True
    intention: Attack = field(default=Inverse(), metadata={"registry": INTENTIONS})  # each attacker's attack

    def __post_init__(self) -> None:
        if self.intention.omniscient:
            raise ConfigError(
                f"intention is {self.intention}, which needs honest messages, but colluders know none; "
                f"expected one of: {', '.join(INTENTIONS)}"
            )

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.intention.poison(labels_HB, classes, keys)

    def tamper(self, seen: Seen) -> Message:
        forged = self.intention.tamper(seen)
        return forged | {n: consensus(forged[n], seen.shared).expand_as(forged[n]) for n in seen.bulk}
