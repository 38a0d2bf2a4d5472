"""A sleeper: honest until a round, then inverse, to earn a reputation first. Knows its own message alone."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.inverse import Inverse
from fedvote.core import Message
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Sleeper(Attack):
    wakes: int = 10  # the first round in which it inverts its message

    def __post_init__(self) -> None:
        check_at_least(self, wakes=1)

    def tamper(self, seen: Seen) -> Message:
        return Inverse().tamper(seen) if seen.keys[0].round >= self.wakes else seen.own
