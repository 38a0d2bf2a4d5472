"""An experiment, such as a figure or table of the paper: its measurements, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fedvote.errors import ConfigError
from fedvote.report.chart import Page


@dataclass(frozen=True)
class Asked:
    """The part of an experiment to run, and changes to it."""

    seeds: int = 3  # number of seeds: 0, 1, ...; the paper repeats everything three times
    rounds: int | None = None  # of every run; None: as many as the experiment's presets have
    settings: tuple[str, ...] = ()  # of all runs, as `a.b=c`
    only: tuple[str, ...] = ()  # rows or columns to run; empty: all
    device: str = "auto"
    jobs: int = 1  # runs at a time, in processes of their own with one thread each

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("rounds", self.rounds), ("jobs", self.jobs)):
            if value is not None and value < 1:
                raise ConfigError(f"asked for {value} {name}, expected 1 or more")
        if any(setting.startswith("seed=") for setting in self.settings):
            raise ConfigError("--set sets a seed, expected a number of seeds: use --seeds N, which runs 0 to N - 1")

    @property
    def changed(self) -> str:
        """The settings that differ from the experiment's own."""
        return ", ".join([*self.settings, *([f"rounds={self.rounds}"] if self.rounds is not None else [])])

    def without(self, names: Sequence[str]) -> Asked:
        """The same without these changes, which an experiment has no use for."""
        return replace(self, **{name: getattr(Asked, name) for name in names})

    def titled(self, about: str) -> str:
        """The experiment's description, with the changes: it may speak of other data than the runs had."""
        return f"{about}; changed: {self.changed}" if self.changed else about


def ignored_by(experiment: Experiment) -> Sequence[str]:
    """The fields of `Asked` that change nothing: an experiment that has no use for them names them as `ignores`."""
    found: Sequence[str] = getattr(experiment, "ignores", ())
    return found


class Found(Protocol):
    """The results so far: as numbers, as a page, and as a table for a terminal."""

    def numbers(self) -> dict[str, Any]: ...

    def page(self) -> Page: ...

    def text(self) -> str: ...


@runtime_checkable
class Experiment(Protocol):
    @property
    def about(self) -> str:
        """A description: which figure or table it is, and what it shows."""
        ...

    def names(self) -> Mapping[str, Sequence[str]]:
        """The names that `only` takes, by their kind, such as rows and columns."""
        ...

    def measure(self, asked: Asked, runs: Path) -> Iterator[Found]:
        """Yield the results so far after every run. Run folders go into `runs`; finished runs are not repeated."""
        ...
