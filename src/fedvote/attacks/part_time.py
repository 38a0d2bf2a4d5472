"""Part-time: another attack in every n-th round from a first one on, else honest. Knows what that attack knows.

Honest rounds between the attacks restore a reputation. With `every = 1` it is an attack that starts late, after its
clients have earned one. The attack inside is shown only what it declares to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, narrowed
from fedvote.attacks.composite import Composite
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.single import SINGLE
from fedvote.core import Message
from fedvote.randomness import Key
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class PartTime(Composite):
    intention: Attack = field(default=Omniscient(), metadata={"registry": SINGLE})  # the attack
    every: int = 2  # rounds from one attack to the next
    starts: int = 1  # the round of the first attack

    def __post_init__(self) -> None:
        check_at_least(self, every=1, starts=1)

    def attacks(self, key: Key) -> bool:
        return key.round >= self.starts and (key.round - self.starts) % self.every == 0

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.intention.poison(labels_HB, classes, keys) if self.attacks(keys[0]) else labels_HB

    def tamper(self, seen: Seen) -> Message:
        return self.intention.tamper(narrowed(seen, self.intention)) if self.attacks(seen.keys[0]) else seen.own
