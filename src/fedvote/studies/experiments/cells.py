"""One configuration of an experiment, and what came out of it over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from fedvote.plan import Computation, FlowerOptions
from fedvote.runs.config import Config, read
from fedvote.runs.sweep import in_order

Record = Mapping[str, Any]
"""What was measured in one round."""


@dataclass(frozen=True)
class Cell:
    """What is run once a seed."""

    row: str  # a line of a figure, or the heading of a table's row
    preset: str
    settings: tuple[str, ...] = ()
    column: str = ""
    printed: Mapping[str, float] = field(default_factory=dict, hash=False)  # in the paper: percent, by metric


@dataclass(frozen=True)
class Runs:
    """The runs of one cell, by seed."""

    cell: Cell
    config: Config
    by_seed: Mapping[int, Sequence[Record]]

    @property
    def as_printed(self) -> bool:
        """Whether it was run as the experiment has it, and nothing that matters was changed by --set or --rounds."""
        return _what_matters(self.config) == _what_matters(read(self.cell.preset, in_order(self.cell.settings)))

    @property
    def rounds(self) -> int:
        """That all seeds have."""
        return min(map(len, self.by_seed.values()))

    def by_round(self, metric: str) -> list[float | None]:
        """The mean over seeds, where all of them measured it."""
        values = zip(*([record.get(metric) for record in run] for run in self.by_seed.values()), strict=False)
        return [None if None in each else statistics.fmean(each) for each in values]

    def so_far(self, metric: str) -> list[float]:
        """The sum over all rounds until then."""
        return list(accumulate(value or 0.0 for value in self.by_round(metric)))

    def last(self, metric: str, rounds: int | None = None) -> list[float]:
        """What every seed ended with, or had after so many rounds."""
        measured = ([record[metric] for record in run[:rounds] if metric in record] for run in self.by_seed.values())
        return [values[-1] for values in measured if values]

    def second_half(self, metric: str) -> list[float]:
        """The mean over the second half of every seed's rounds."""
        measured = ([record[metric] for record in run if metric in record] for run in self.by_seed.values())
        return [statistics.fmean(values[len(values) // 2 :]) for values in measured if values]


def _what_matters(config: Config) -> Config:
    """All but the seed and the machines."""
    return replace(config, seed=0, engine=Computation(), flower=FlowerOptions())
