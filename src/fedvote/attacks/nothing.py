"""No attack: hostile clients behave like all others. Knows nothing."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.attacks.attack import Attack


@dataclass(frozen=True)
class Nothing(Attack):
    pass
