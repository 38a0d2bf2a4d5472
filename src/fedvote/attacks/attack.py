"""The contract of an attack: hostile clients may train on poisoned examples, and may send forged messages.

The method's own codec encodes every message, so against votes an attacker can only send votes. An attack knows its own
clients' messages; an omniscient one also knows all honest messages, and one that says so the random numbers by which
honest clients round. Every attack knows the method, the network, the broadcast and the number of clients.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedvote.core import Examples, Message
from fedvote.errors import ConfigError
from fedvote.randomness import SERVER, Key
from fedvote.settings import Settings

if TYPE_CHECKING:
    from fedvote.reputation import Reputation


@dataclass(frozen=True, eq=False)
class Seen:
    """An attacker's view of a round. Each tensor has one row per client: H hostile or G honest ones."""

    own: Message  # the hostile clients' honest messages; of clients that learned nothing if the attack does not train
    honest: Message = field(default_factory=dict)  # the honest clients' messages; empty unless omniscient
    keys: Sequence[Key] = ()  # of the hostile clients
    clients: int = 0  # number of clients in the round, H + G
    unmoved: Message = field(default_factory=dict)  # message of a client that learned nothing; missing tensors are 0
    scales: Collection[str] = ()  # tensors that scale the rest of a client's message
    rule: Reputation | None = None  # the server's reputation rule; None if all clients count the same
    unsigned: Collection[str] = ()  # tensors of indices or counts, which have no opposite
    layers: Mapping[str, slice] = field(default_factory=dict)  # the voted weights of each layer, by its name
    honest_keys: Sequence[Key] = ()  # of the honest clients, to draw their random numbers; empty unless it `draws`

    @property
    def bulk(self) -> list[str]:
        """Names of the tensors that carry votes or a model: no scales, no indices, and no single numbers."""
        left_out = {*self.scales, *self.unsigned}
        return [name for name, rows in self.own.items() if rows[0].numel() > 1 and name not in left_out]

    def start(self, name: str) -> Tensor:
        """(N,) the message of a client that learned nothing, as floats."""
        return self.unmoved.get(name, torch.zeros_like(self.own[name][0], dtype=torch.float32)).float()

    def opposite(self, name: str, rows: Tensor) -> Tensor:
        """Votes with the sign inverted; floats mirrored at the message of a client that learned nothing."""
        if not rows.is_floating_point():
            return -rows

        # start - (theta - start)
        return 2 * self.start(name) - rows

    @property
    def shared(self) -> Key:
        """The key of random numbers that all hostile clients have in common."""
        return replace(self.keys[0], client=SERVER)


@dataclass(frozen=True)
class Attack(Settings):
    """An attack overrides `poison_examples`, `poison` or `tamper`, or several; without that it does nothing."""

    omniscient: ClassVar[bool] = False  # whether it needs the honest clients' messages
    joint: ClassVar[bool] = False  # whether it combines messages of several clients, which scales would forbid
    trains: ClassVar[bool] = True  # whether its clients must train, to know their honest messages
    draws: ClassVar[bool] = False  # whether it needs the honest clients' random numbers

    @property
    def poisons(self) -> bool:
        """Whether it changes the labels of batches."""
        return type(self).poison is not Attack.poison

    @property
    def poisons_examples(self) -> bool:
        """Whether it changes the examples themselves, before any training."""
        return type(self).poison_examples is not Attack.poison_examples

    def poison_examples(self, examples: Examples, classes: int, member: int, key: Key) -> Examples:
        """The examples that one hostile client has instead of its own: as many, before any augmentation.

        `member`: the client's place among the hostile clients, from 0. The key is the client's, of round 0.
        """
        return examples

    def triggered(self, examples: Examples, classes: int, key: Key) -> Examples | None:
        """Test examples with the attack's trigger, labelled as the attackers want them; None: there is no trigger."""
        return None

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        """The labels that hostile clients train on in a round."""
        return labels_HB

    def tamper(self, seen: Seen) -> Message:
        """The messages that hostile clients send; each tensor has H rows."""
        return seen.own


def narrowed(seen: Seen, attack: Attack, rows: Sequence[int] | None = None) -> Seen:
    """The view of an attack that is part of another: what it declares to know, and only these hostile clients."""
    own = seen.own if rows is None else {name: values[list(rows)] for name, values in seen.own.items()}
    keys = seen.keys if rows is None else [seen.keys[row] for row in rows]
    honest, theirs = seen.honest if attack.omniscient else {}, seen.honest_keys if attack.draws else ()
    return replace(seen, own=own, keys=keys, honest=honest, honest_keys=theirs)


def check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ConfigError(f"share is {share}, expected a number from 0 to 1")
