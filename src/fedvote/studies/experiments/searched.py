"""Experiments in two steps: a search of settings with seed 0, then a comparison of the chosen ones with later seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedvote.report.chart import Page
from fedvote.studies.experiments.cells import Cell, Runs
from fedvote.studies.experiments.comparison import Compared, Comparison
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.kept_names import check_names_kept
from fedvote.studies.experiments.views import grid
from fedvote.studies.rows import chosen

Chosen = Mapping[str, str]
"""The subject of a search, such as an attack -> the name of its chosen setting."""


@dataclass(frozen=True)
class Searched:
    about: str
    candidates: tuple[Cell, ...]  # row: what is searched for; column: a setting's name; its cells are averaged
    choose: Callable[[Mapping[str, float]], str]  # by the accuracy of each setting
    compare: Callable[[Chosen], Comparison]

    def measure(self, asked: Asked, runs: Path) -> Iterator[Found]:
        """Search, then compare. `only` may name what is searched for, too."""
        self.check(asked.only)
        every = {cell.row for cell in self.candidates}
        wanted = every.intersection(asked.only) or every
        searched = [cell for cell in self.candidates if cell.row in wanted]
        compared_later = self.compare({cell.row: cell.column for cell in searched}).cells
        for cells, among in ((self.candidates, searched), (compared_later, compared_later)):
            check_names_kept(cells, among, asked.settings)
        tried = self.search(wanted, replace(asked, seeds=1, only=()), runs)
        settings = self.chosen(tried.runs)
        only = [name for name in asked.only if name not in every]
        if wanted != every:
            asked_for = self.compare({row: name for row, name in settings.items() if row in wanted})
            only += [cell.row for cell in asked_for.cells]
        for compared in replace(self.compare(settings), first_seed=1).measure(replace(asked, only=tuple(only)), runs):
            yield Found(tried, settings, compared)

    def search(self, wanted: Container[str], asked: Asked, runs: Path) -> Compared:
        """The candidates of the wanted rows, and of all rows that an earlier search has finished."""
        search = Comparison(f"Search: {self.about}", self.candidates, grid({"accuracy": ""}, "Setting"), stop_seed=1)
        done = search.finished(asked, runs)
        unfinished = {cell.row for cell in self.candidates if cell not in done}
        cells = tuple(cell for cell in self.candidates if cell.row in wanted or cell.row not in unfinished)
        *_, tried = replace(search, cells=cells).measure(asked, runs)
        return tried

    def check(self, only: Sequence[str]) -> None:
        """Refuse, before the search, a name that is neither searched for nor compared after any choice."""
        by_any = set[str]().union(*self._compared())
        known = [name for names in self.names().values() for name in names]
        chosen([name for name in only if name not in by_any], known, self.about)

    def names(self) -> dict[str, list[str]]:
        """The subjects of the search, and the rows and columns that the comparison has after any choice."""
        compared = self._compared()
        by_all = [name for name in compared[0] if all(name in names for names in compared)]
        searched = dict.fromkeys(cell.row for cell in self.candidates)
        return {"searched": list(searched), "compared": list(dict.fromkeys(by_all))}

    def _compared(self) -> list[list[str]]:
        """The names of the comparison after each choice."""
        return [
            [name for cell in self.compare({each.row: each.column}).cells for name in (cell.row, cell.column)]
            for each in self.candidates
        ]

    def chosen(self, tried: Sequence[Runs]) -> dict[str, str]:
        found: dict[str, dict[str, list[float]]] = {}
        for runs in tried:
            found.setdefault(runs.cell.row, {}).setdefault(runs.cell.column, []).extend(runs.last("accuracy"))
        means = {row: {name: statistics.fmean(each) for name, each in by.items()} for row, by in found.items()}
        return {row: self.choose(by_name) for row, by_name in means.items()}


def worst(accuracies: Mapping[str, float]) -> str:
    """The setting that harms most."""
    return min(accuracies, key=accuracies.__getitem__)


def best(accuracies: Mapping[str, float]) -> str:
    return max(accuracies, key=accuracies.__getitem__)


@dataclass(frozen=True)
class Found:
    """A comparison, and the search before it."""

    tried: Compared
    chosen: Chosen
    compared: Compared

    def numbers(self) -> dict[str, Any]:
        return {**self.compared.numbers(), "chosen": dict(self.chosen), "search": self.tried.numbers()["cells"]}

    def page(self) -> Page:
        return self.compared.page()

    def text(self) -> str:
        return self.compared.text()
