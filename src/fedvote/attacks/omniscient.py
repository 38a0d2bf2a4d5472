"""Omniscient opposite: minus what the honest clients decide together (Appendix A-B). Knows every honest message.

Against votes it is minus the plurality of the honest ballots, against floats minus their mean; all attackers send it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.together import consensus
from fedvote.core import Message


@dataclass(frozen=True)
class Omniscient(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    trains: ClassVar[bool] = False

    def tamper(self, seen: Seen) -> Message:
        opposite = {n: -consensus(seen.honest[n], seen.shared).expand_as(seen.own[n]) for n in seen.bulk}
        return seen.own | opposite
