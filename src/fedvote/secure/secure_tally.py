"""The server sees only the tally: masks hide every ballot, and cancel in the sum (Bonawitz et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from fedvote.errors import ConfigError
from fedvote.secure.secrecy import Secrecy
from fedvote.secure.session import Terms
from fedvote.secure.whole_numbers import count_of, largest_of
from fedvote.wire import Codecs

RoundingSource = Literal["auto", "private", "seed"]


@dataclass(frozen=True)
class SecureTally(Secrecy):
    sums_alone: ClassVar[bool] = True

    rounding: RoundingSource = "auto"  # "private": by own random numbers; "seed": repeatable, for the simulator
    minimum: int = 3  # ballots in a tally: clients refuse to help with fewer
    threshold: float = 0.0  # share of a client's helpers that can unmask it; 0: 2/3 of all, 2/5 in a graph
    neighbours: int = 0  # clients that share masks with each client; 0: all, or of more than 100 as many as are safe
    count_only: bool = False  # in the simulator: make no masks, and only count the bytes of all messages

    def __post_init__(self) -> None:
        if self.minimum < 2:
            raise ConfigError(f"secure.minimum is {self.minimum}, expected 2 or more: a tally of one is a ballot")
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"secure.threshold is {self.threshold}, expected a share: 0 (the usual) to 1")
        if self.neighbours < 0 or self.neighbours == 1:
            raise ConfigError(f"secure.neighbours is {self.neighbours}, expected 0 (as many as are safe), or 2 or more")

    def terms(self, run: str, codecs: Codecs, configuration: bytes = b"") -> Terms:
        """What server and clients agree on, for messages by these codecs; `configuration`: a hash of it."""
        count, largest = count_of(codecs), largest_of(codecs)
        return Terms(run, count, largest, self.neighbours, self.threshold, self.minimum, configuration)

    def rounds_privately(self, between_machines: bool) -> bool:
        return self.rounding == "private" or (self.rounding == "auto" and between_machines)
