"""Omniscient opposite: minus the honest clients' joint result (Appendix A-B). Knows every honest message.

All attackers send minus the plurality of the honest ballots; for floats, minus the mean honest update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import consensus
from fedvote.core import Message


@dataclass(frozen=True)
class Omniscient(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    trains: ClassVar[bool] = False

    def tamper(self, seen: Seen) -> Message:
        result = {name: consensus(seen.honest[name], seen.shared) for name in seen.bulk}
        return seen.own | {n: seen.opposite(n, rows).expand_as(seen.own[n]) for n, rows in result.items()}
