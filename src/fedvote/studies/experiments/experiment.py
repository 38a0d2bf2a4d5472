"""An experiment, such as a figure or table of the paper: what is measured for it, and the page that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedvote.errors import ConfigError
from fedvote.report.chart import Page


@dataclass(frozen=True)
class Asked:
    """How much of an experiment is wanted."""

    seeds: int = 3  # 0, 1, ...; the paper repeats everything three times
    rounds: int | None = None  # not given: as many as the experiment's presets have
    settings: tuple[str, ...] = ()  # of all runs, as `a.b=c`
    only: tuple[str, ...] = ()  # the rows or columns that are wanted; none given: all
    device: str = "auto"

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("rounds", self.rounds)):
            if value is not None and value < 1:
                raise ConfigError(f"asked for {value} {name}, expected 1 or more")
        if any(setting.startswith("seed=") for setting in self.settings):
            raise ConfigError("a seed is set, expected how many to run, 0 and on: --seeds N")

    @property
    def changed(self) -> str:
        """What is not as the experiment has it."""
        return ", ".join([*self.settings, *([f"rounds={self.rounds}"] if self.rounds is not None else [])])


class Found(Protocol):
    """What was measured so far, as numbers, as a page, and as a table for a terminal."""

    def numbers(self) -> dict[str, Any]: ...

    def page(self) -> Page: ...

    def text(self) -> str: ...


class Experiment(Protocol):
    @property
    def about(self) -> str:
        """What it shows, and which figure or table it is."""
        ...

    def measure(self, asked: Asked, runs: Path) -> Iterator[Found]:
        """All that is known, after every run. Run folders go into `runs`; those that are there are not run again."""
        ...
