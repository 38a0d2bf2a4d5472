"""Idle attackers: some vote as if they had learned nothing, the others attack. Knows every honest message.

An idle ballot has no innovation. Nobody is left out for too little work, so it counts. It makes a rule that compares
ballots with the spread of all, or that asks every client for its camp, blind to the others. The attack inside is shown
only what it declares to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, narrowed
from fedvote.attacks.collusion import alphabet_of
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.single import SINGLE
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key


@dataclass(frozen=True)
class Idle(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    intention: Attack = field(default=Omniscient(), metadata={"registry": SINGLE})  # the attack of the others
    idle: int = 1  # hostile clients that vote as if untrained; one at least is left to attack

    def __post_init__(self) -> None:
        if self.idle < 1:
            raise ConfigError(f"idle is {self.idle}, expected 1 or more")

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.intention.poison(labels_HB, classes, keys)

    def tamper(self, seen: Seen) -> Message:
        idle = min(self.idle, len(seen.keys) - 1)
        rows = range(idle, len(seen.keys))
        sent = {name: values.clone() for name, values in seen.own.items()}
        for name in seen.bulk:
            sent[name][:idle] = self.untrained(seen, name, seen.keys[:idle])
        for name, values in self.intention.tamper(narrowed(seen, self.intention, rows)).items():
            sent[name][idle:] = values
        return sent

    def untrained(self, seen: Seen, name: str, keys: Sequence[Key]) -> Tensor:
        """The messages of clients that learned nothing: the broadcast, votes rounded by each client's own numbers."""
        rows_HN = seen.own[name][: len(keys)]
        start_HN = torch.zeros_like(rows_HN, dtype=torch.float32) + seen.unmoved.get(name, 0)
        if rows_HN.is_floating_point() or not keys:
            return start_HN.to(rows_HN.dtype)
        return round_by_shared_random(start_HN, alphabet_of(seen.own[name]), keys)
