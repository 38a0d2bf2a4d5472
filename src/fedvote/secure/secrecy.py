"""The contract of a secrecy: what the server may see of a round's ballots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Secrecy:
    sums_alone: ClassVar[bool] = False  # whether the server learns no ballot, but the sums of all
