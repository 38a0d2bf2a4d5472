"""One configuration of an experiment, and its runs over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any

from fedvote.plan import Computation, FlowerOptions
from fedvote.runs.config import Config, read
from fedvote.runs.toml_tables import in_order

Record = Mapping[str, Any]
"""One round's line of metrics.jsonl."""


@dataclass(frozen=True)
class Cell:
    """One configuration, run once with every seed."""

    row: str  # a line of a figure, or the heading of a table's row
    preset: str
    settings: tuple[str, ...] = ()
    column: str = ""
    printed: Mapping[str, float] = field(default_factory=dict, hash=False)  # metric -> the paper's number, in percent

    @property
    def name(self) -> str:
        """Its row, and its column if it has one."""
        return f"{self.row}, {self.column}" if self.column else self.row


@dataclass(frozen=True)
class Runs:
    """The runs of one cell."""

    cell: Cell
    config: Config
    by_seed: Mapping[int, Sequence[Record]]
    environments: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # by seed: machine, commit, own files

    @property
    def as_printed(self) -> bool:
        """Whether --set and --rounds left the experiment's results comparable to the paper's."""
        return _comparable(self.config) == _comparable(config_of(self.cell.preset, self.cell.settings))

    @property
    def rounds(self) -> int:
        """Number of rounds that all seeds have."""
        return min(map(len, self.by_seed.values()))

    def by_round(self, metric: str) -> list[float | None]:
        """The mean over seeds after each round; None unless all seeds measured it."""
        values = zip(*([record.get(metric) for record in run] for run in self.by_seed.values()), strict=False)
        return [None if None in each else statistics.fmean(each) for each in values]

    def so_far(self, metric: str) -> list[float]:
        """The sum of a metric over all rounds up to each round."""
        return list(accumulate(value or 0.0 for value in self.by_round(metric)))

    def last(self, metric: str, rounds: int | None = None) -> list[float]:
        """Each seed's last value, or its last within so many rounds."""
        return [values[-1] for values in self._measured(metric, rounds)]

    def second_half(self, metric: str) -> list[float]:
        """Each seed's mean over the second half of its rounds."""
        return [statistics.fmean(values[len(values) // 2 :]) for values in self._measured(metric)]

    def _measured(self, metric: str, rounds: int | None = None) -> list[list[float]]:
        """Each seed's values of a metric, without seeds that have none."""
        runs = ([record[metric] for record in run[:rounds] if metric in record] for run in self.by_seed.values())
        return [values for values in runs if values]


@cache  # experiments of a thousand cells ask again after every run
def config_of(preset: str, settings: tuple[str, ...]) -> Config:
    return read(preset, in_order(settings))


def _comparable(config: Config) -> Config:
    """A configuration without its seed and machine, which leave results comparable."""
    return replace(config, seed=0, engine=Computation(), flower=FlowerOptions())
