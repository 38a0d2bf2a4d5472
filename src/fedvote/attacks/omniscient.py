"""Omniscient opposite: minus what the honest clients decide together (Appendix A-B). Knows every honest message.

Against votes it is minus the plurality of the honest ballots, against floats minus their mean update; all attackers
send it.
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
        decided = {name: consensus(seen.honest[name], seen.shared) for name in seen.bulk}
        return seen.own | {n: seen.opposite(n, rows).expand_as(seen.own[n]) for n, rows in decided.items()}
