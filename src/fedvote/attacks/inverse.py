"""Inverse sign: every vote, or update of a weight, with its sign inverted (Section VI). Knows its own message alone.

An update is the change since the broadcast: clients that send models send 2 start - own. Minus the model would be a
different attack, and easy to see.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.attacks.attack import Attack, Seen
from fedvote.core import Message


@dataclass(frozen=True)
class Inverse(Attack):
    def tamper(self, seen: Seen) -> Message:
        return seen.own | {name: seen.opposite(name, seen.own[name]) for name in seen.bulk}
