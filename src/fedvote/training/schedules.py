"""Schedules over the rounds of a run: a factor for the learning rate, the local steps, or another number.

A schedule depends on the round and on the number of rounds alone. So every machine computes the same factor, and
nothing of it is in the state. A run whose schedule depends on the number of rounds cannot be resumed with more rounds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from fedvote.errors import ConfigError
from fedvote.settings import Settings, check_at_least

SAME = 1e-9  # shares of a run that differ by less are the same: rounding errors, in runs with `hold`


@dataclass(frozen=True)
class Schedule(Settings, ABC):
    """A factor for each round."""

    depends_on_rounds: ClassVar[bool] = True  # whether the factor of a round depends on the number of rounds
    warm_up: int = 0  # first rounds, in which the factor rises in equal steps to its schedule
    hold: float = 0.0  # first share of the run, in which the factor stays as the schedule starts

    def __post_init__(self) -> None:
        if self.warm_up < 0:
            raise ConfigError(f"warm_up is {self.warm_up}, expected 0 or a number of rounds")
        if not 0 <= self.hold < 1:
            raise ConfigError(f"hold is {self.hold}, expected a share of the run, from 0 to less than 1")

    def at(self, round: int, rounds: int) -> float:
        """The factor in a round, from 1 to `rounds`."""
        risen = min(1.0, round / (self.warm_up + 1))
        done = min(1.0, (round - 1) / max(1, rounds - 1))
        return risen * self.factor(max(0.0, (done - self.hold) / (1 - self.hold)))

    @abstractmethod
    def factor(self, done: float) -> float:
        """The factor after this share of the run: 0 in the first round, 1 in the last."""


@dataclass(frozen=True)
class Constant(Schedule):
    """1 in every round."""

    depends_on_rounds: ClassVar[bool] = False

    def factor(self, done: float) -> float:
        return 1.0


@dataclass(frozen=True)
class Linear(Schedule):
    """From `start` to `end` in equal steps."""

    start: float = 1.0  # the factor in the first round
    end: float = 0.1  # the factor in the last round

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.start < math.inf and 0 <= self.end < math.inf):
            raise ConfigError(f"start is {self.start} and end {self.end}, expected finite factors of 0 or more")

    def factor(self, done: float) -> float:
        return self.start + (self.end - self.start) * done


@dataclass(frozen=True)
class Cosine(Schedule):
    """From 1 down to `end` along half a cosine, once or with restarts. Loshchilov and Hutter, 2017."""

    end: float = 0.05  # the factor in the last round
    cycles: int = 1  # how often it falls; each cycle starts again from 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.end < math.inf:
            raise ConfigError(f"end is {self.end}, expected a finite factor of 0 or more")
        check_at_least(self, cycles=1)

    def factor(self, done: float) -> float:
        turns = done * self.cycles
        inside = 1.0 if done >= 1 else 0.0 if abs(turns - round(turns)) < SAME else turns % 1.0
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * inside)) / 2


@dataclass(frozen=True)
class Steps(Schedule):
    """1, multiplied by `by` at certain points of the run."""

    at_shares: tuple[float, ...] = (0.5, 0.75)  # shares of the run, without `hold`, after which the factor changes
    by: float = 0.1  # the change at each of them

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= share <= 1 for share in self.at_shares):
            raise ConfigError(f"at_shares is {list(self.at_shares)}, expected shares of the run, from 0 to 1")
        if not 0 <= self.by < math.inf:
            raise ConfigError(f"by is {self.by}, expected a finite factor of 0 or more")

    def factor(self, done: float) -> float:
        return self.by ** sum(done > share - SAME for share in self.at_shares)


SCHEDULES: dict[str, type[Schedule]] = {"constant": Constant, "linear": Linear, "cosine": Cosine, "steps": Steps}
