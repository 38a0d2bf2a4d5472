"""A mixed team: three attacks at once, each by a third of the hostile clients. Knows what they know.

A client's number decides its attack, so that it keeps it in all rounds. Each attack is shown only what it declares to
know, and only its own clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, narrowed
from fedvote.attacks.composite import Composite
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.layer import Layer
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.single import SINGLE
from fedvote.core import Message
from fedvote.randomness import Key


@dataclass(frozen=True)
class Team(Composite):
    first: Attack = field(default=Layer(), metadata={"registry": SINGLE})  # of clients 0, 3, 6, ...
    second: Attack = field(default=Omniscient(), metadata={"registry": SINGLE})  # of clients 1, 4, 7, ...
    third: Attack = field(default=LabelFlip(), metadata={"registry": SINGLE})  # of clients 2, 5, 8, ...

    def members(self, keys: Sequence[Key]) -> list[tuple[Attack, list[int]]]:
        """Each attack, and the rows of its clients."""
        rows = [[row for row, key in enumerate(keys) if key.client % 3 == number] for number in range(3)]
        return [(attack, own) for attack, own in zip(self.inside, rows, strict=True) if own]

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        poisoned_HB = labels_HB.clone()
        for attack, rows in self.members(keys):
            poisoned_HB[rows] = attack.poison(labels_HB[rows], classes, [keys[row] for row in rows])
        return poisoned_HB

    def tamper(self, seen: Seen) -> Message:
        sent = {name: values.clone() for name, values in seen.own.items()}
        for attack, rows in self.members(seen.keys):
            for name, values in attack.tamper(narrowed(seen, attack, rows)).items():
                sent[name][rows] = values
        return sent
