"""The contract of an attack that is made of others: it needs whatever one of them needs."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fedvote.attacks.attack import Attack


@dataclass(frozen=True)
class Composite(Attack):
    @property
    def inside(self) -> tuple[Attack, ...]:
        """The attacks that it is made of: those in its fields."""
        values = (getattr(self, slot.name) for slot in fields(self))
        return tuple(value for value in values if isinstance(value, Attack))

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
