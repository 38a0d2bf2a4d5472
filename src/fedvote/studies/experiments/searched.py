"""Experiments in two steps: a search of settings with seed 0, then a comparison of the chosen ones with later seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedvote.report.chart import Page
from fedvote.studies.experiments.cells import Cell, Runs
from fedvote.studies.experiments.comparison import Compared, Comparison
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.views import grid

Chosen = Mapping[str, str]
"""What is searched for, such as an attack -> the name of its chosen setting."""


@dataclass(frozen=True)
class Searched:
    about: str
    candidates: tuple[Cell, ...]  # row: what is searched for; column: a setting's name; its cells are averaged
    choose: Callable[[Mapping[str, float]], str]  # by the accuracy of each setting
    compare: Callable[[Chosen], Comparison]

    def measure(self, asked: Asked, runs: Path) -> Iterator[Found]:
        search = Comparison(f"Search: {self.about}", self.candidates, grid({"accuracy": ""}, "Setting"), stop_seed=1)
        *_, tried = search.measure(replace(asked, seeds=1, only=()), runs)
        chosen = self.chosen(tried.runs)
        for compared in replace(self.compare(chosen), first_seed=1).measure(asked, runs):
            yield Found(tried, chosen, compared)

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
