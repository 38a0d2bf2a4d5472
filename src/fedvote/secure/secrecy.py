"""The contract of secrecy: how much of a round's ballots the server may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedvote.settings import Settings


@dataclass(frozen=True)
class Secrecy(Settings):
    sums_alone: ClassVar[bool] = False  # whether the server learns no ballot, but the sums of all

    def rounds_privately(self, between_machines: bool) -> bool:
        """Whether clients round by numbers that nobody else can draw."""
        return False
