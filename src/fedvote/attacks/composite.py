"""The contract of an attack that is made of others: it needs whatever one of them needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from fedvote.attacks.attack import Attack


@dataclass(frozen=True)
class Composite(Attack, ABC):
    @property
    @abstractmethod
    def inside(self) -> tuple[Attack, ...]:
        """The attacks that it is made of."""

    @property
    def omniscient(self) -> bool:  # type: ignore[override]
        return any(attack.omniscient for attack in self.inside)

    @property
    def joint(self) -> bool:  # type: ignore[override]
        return any(attack.joint for attack in self.inside)

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return any(attack.draws for attack in self.inside)

    @property
    def poisons(self) -> bool:
        return any(attack.poisons for attack in self.inside)
