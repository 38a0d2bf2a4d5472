"""What an attack is: hostile clients may train on poisoned labels, and may send something else than they should.

Whatever they send is encoded by the method's own codec: against votes, an attacker can send nothing but votes. An
attack knows its own clients' messages; one that says so also knows everybody else's. All know the method, the
broadcast, and how many clients there are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from fedvote.core import Message
from fedvote.randomness import Key

if TYPE_CHECKING:
    from fedvote.reputation import Reputation


@dataclass(frozen=True)
class Seen:
    """What an attacker sees of a round; H hostile and G honest clients, in front of every tensor."""

    own: Message  # what the hostile clients would have sent; if the attack does not train, as if they learned nothing
    honest: Message = field(default_factory=dict)  # what the others send; empty unless the attack is omniscient
    keys: Sequence[Key] = ()  # of the hostile clients
    clients: int = 0  # of the round, H + G
    unmoved: Message = field(default_factory=dict)  # what a client that learns nothing sends; not named here: zeros
    scales: Collection[str] = ()  # tensors that only say how large the others are
    rule: Reputation | None = None  # by which the server weighs clients, if it does

    @property
    def bulk(self) -> list[str]:
        """The tensors that carry votes or a model: no scale, and more than one value a client, so no count either."""
        return [name for name, rows in self.own.items() if rows[0].numel() > 1 and name not in self.scales]

    def opposite(self, name: str, rows: Tensor) -> Tensor:
        """Minus votes; of floats, as much on the other side of what a client sends that learns nothing."""
        if not rows.is_floating_point():
            return -rows

        # start - (theta - start)
        return 2 * self.unmoved.get(name, 0) - rows

    @property
    def shared(self) -> Key:
        """For what hostile clients draw together."""
        return Key(self.keys[0].seed, self.keys[0].round)


@dataclass(frozen=True)
class Attack:
    """Of itself it does nothing. An attack overrides one of the two, or both."""

    omniscient: ClassVar[bool] = False  # whether it has to see what honest clients send
    joint: ClassVar[bool] = False  # whether it puts messages of several clients together, which must then compare
    trains: ClassVar[bool] = True  # whether its clients have to know what they would have sent, and so to train

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        """The labels that hostile clients train on."""
        return labels_HB

    def tamper(self, seen: Seen) -> Message:
        """The messages that hostile clients send, H in front."""
        return seen.own
