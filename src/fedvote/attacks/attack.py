"""What an attack is: hostile clients may train on poisoned labels, and may send something else than they should.

Whatever they send is encoded by the method's own codec: against votes, an attacker can send nothing but votes. An
attack knows its own clients' messages; one that says so also knows everybody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fedvote.core import Batches, Key, Message


@dataclass(frozen=True)
class Seen:
    """What an attacker sees of a round; H hostile and G honest clients, in front of every tensor."""

    own: Message  # what the hostile clients would have sent
    honest: Message = field(default_factory=dict)  # what the others send; empty unless the attack is omniscient
    keys: Sequence[Key] = ()  # of the hostile clients


@dataclass(frozen=True)
class Attack:
    """Of itself it does nothing. An attack overrides one of the two, or both."""

    omniscient: ClassVar[bool] = False  # whether it has to see what honest clients send

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        """The labels that hostile clients train on."""
        return labels_HB

    def tamper(self, seen: Seen) -> Message:
        """The messages that hostile clients send, H in front."""
        return seen.own


@dataclass(frozen=True, eq=False)
class Poisoned(Batches):
    """Batches of which some clients' labels are what an attack makes of them."""

    attack: Attack
    hostile: Sequence[int]  # rows of the stack
    classes: int
    keys: Sequence[Key]  # of those rows

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        x, y = super().at(step)
        y = y.clone()
        y[self.hostile] = self.attack.poison(y[self.hostile], self.classes, self.keys)
        return x, y


def bulk(message: Message) -> list[str]:
    """The tensors that carry a model: those of more than one value a client. A norm or a count is left as it is."""
    return [name for name, rows in message.items() if rows[0].numel() > 1]
