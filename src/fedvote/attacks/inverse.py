"""Inverse sign: every vote, or weight, with its sign turned round (Section VI). Knows its own message alone."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.attacks.attack import Attack, Seen
from fedvote.core import Message


@dataclass(frozen=True)
class Inverse(Attack):
    def tamper(self, seen: Seen) -> Message:
        return seen.own | {name: -seen.own[name] for name in seen.bulk}
