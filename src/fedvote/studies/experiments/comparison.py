"""Comparisons: experiments that run configurations, each with every seed, and show them side by side."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.randomness.attackers import draw_attackers
from fedvote.report.chart import Page, facts_of
from fedvote.report.run_sentence import in_common
from fedvote.report.sections import section
from fedvote.reputation import trusted_by
from fedvote.runs.claim import check_same_run
from fedvote.runs.config import Config, depends_on_rounds
from fedvote.runs.environment import ENVIRONMENT, environment
from fedvote.runs.experiment import dataset
from fedvote.runs.folder import RunFolder
from fedvote.runs.own_files import FILES, check_same_code
from fedvote.runs.progress import watch
from fedvote.runs.simulated_run import run
from fedvote.runs.sweep import folder_name
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.studies.experiments.cells import Cell, Record, Runs, config_of
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.kept_names import check_names_kept
from fedvote.studies.experiments.parallel import PendingRun, run_all
from fedvote.studies.experiments.views import Show
from fedvote.studies.rows import chosen, table
from fedvote.system.device import find_device

KEPT = ("round", "accuracy", "accuracy_calibrated", "accuracy_float", "backdoor_success", "backdoor_success_float",
        "loss", "uplink_bytes", "downlink_bytes", "uplink_bits_per_weight", "downlink_bits_per_weight",
        "total_bits_per_weight", "seconds")  # fmt: skip
"""The metrics of a round in an experiment's file; its run folders have all."""


@dataclass(frozen=True)
class Comparison:
    about: str
    cells: tuple[Cell, ...]
    show: Show
    note: str = ""  # such as differences from the paper
    first_seed: int = 0  # of its runs: settings may have been chosen with seeds before it
    stop_seed: int | None = None  # runs with this seed and later ones belong to another comparison; None: all belong

    def names(self) -> dict[str, list[str]]:
        """Rows and columns, in the order of the cells."""
        rows = dict.fromkeys(cell.row for cell in self.cells)
        columns = dict.fromkeys(cell.column for cell in self.cells if cell.column)
        return {"rows": list(rows), "columns": list(columns)}

    def measure(self, asked: Asked, runs: Path) -> Iterator[Compared]:
        wanted = self.wanted(asked)
        check_names_kept(self.cells, wanted, asked.settings)
        machine = environment(find_device(asked.device))
        planned = [  # configured before the first run, to find mistakes; all cells of a seed, then the next seed
            (seed, cell, configured(cell, seed, asked))
            for seed in range(self.first_seed, self.first_seed + asked.seeds)
            for cell in wanted
        ]
        pending = unfinished(planned, asked, runs)
        if asked.jobs > 1:
            for done in run_all(pending, asked.jobs):
                if done % (2 * asked.jobs) == 0:  # looking for finished runs takes a while
                    yield self.compared(asked, self.finished(asked, runs), machine)
        folders = self.finished(asked, runs)
        load = cache(dataset)  # runs share their data
        for number, (seed, cell, config) in enumerate(planned, start=1):
            folder = RunFolder(runs / name_of(cell, seed, asked))
            check(folder, config)
            if not is_finished(folder, config):
                title = f"{number}/{len(planned)} {cell.name}, seed {seed}"
                data = load(config.data.name)
                snapshots = run(config, folder, device=asked.device, resume=True, data=data)
                for _ in watch(snapshots, config.rounds, folder.metrics_before_resume(), title):
                    pass
            folders.setdefault(cell, {})[seed] = folder
            if asked.jobs == 1 or number == len(planned):
                yield self.compared(asked, folders, machine)

    def compared(
        self, asked: Asked, folders: Mapping[Cell, Mapping[int, RunFolder]], machine: Mapping[str, str]
    ) -> Compared:
        found = [runs_of(each, folders[each], asked) for each in self.cells if each in folders]
        return Compared(self, asked, found, machine)

    def finished(self, asked: Asked, runs: Path) -> dict[Cell, dict[int, RunFolder]]:
        """The folders of all finished runs, of any seed, also of cells that were not asked for: they are shown, too."""
        known = {path.name for path in runs.glob("*_seed=*")}
        found: dict[Cell, dict[int, RunFolder]] = {}
        for cell in self.cells if known else ():
            if not fits(cell, asked):
                continue
            for seed in itertools.islice(itertools.count(), self.first_seed, self.stop_seed):
                folder = RunFolder(runs / name_of(cell, seed, asked))
                if folder.path.name not in known or not is_finished(folder, config := configured(cell, seed, asked)):
                    break
                check_same_code(folder, config)
                found.setdefault(cell, {})[seed] = folder
        return found

    def wanted(self, asked: Asked) -> list[Cell]:
        """The cells in the rows and columns asked for; if no row is named, in all rows, and likewise for columns."""
        names = self.names()
        chosen(asked.only, [*names["rows"], *names["columns"]], self.about)
        rows, columns = (set(known).intersection(asked.only) for known in names.values())
        return [
            cell for cell in self.cells if (not rows or cell.row in rows) and (not columns or cell.column in columns)
        ]


@dataclass(frozen=True)
class Compared:
    """A comparison, with the runs that are finished."""

    comparison: Comparison
    asked: Asked
    runs: Sequence[Runs]
    environment: Mapping[str, str]

    def numbers(self) -> dict[str, Any]:
        cells = [
            {
                **{name: getattr(each.cell, name) for name in ("row", "column", "preset", "settings", "printed")},
                "folders": [name_of(each.cell, seed, self.asked) for seed in each.by_seed],
                "environments": {seed: other for seed, other in each.environments.items() if other != self.environment},
                "config": as_table(each.config),
                "seeds": {
                    seed: [kept(record, hostile_of(each.config, seed)) for record in records]
                    for seed, records in each.by_seed.items()
                },
            }
            for each in self.runs
        ]
        view = self.comparison.show(self.runs)
        return {"environment": self.environment, "table": [list(view.head), *map(list, view.rows)], "cells": cells}

    def page(self) -> Page:
        view = self.comparison.show(self.runs)
        configs, rounds = [each.config for each in self.runs], [each.rounds for each in self.runs]
        facts = facts_of(configs, self.environment, rounds)
        facts["seeds"] = in_common(sorted({seed for each in self.runs for seed in each.by_seed}))
        notes = " ".join(filter(None, (self.comparison.note, self.uneven)))
        note = [section("Notes", explain=notes)] if notes else []
        return Page(self.asked.titled(self.comparison.about), facts, [view.section(), *note], view.charts)

    def text(self) -> str:
        view = self.comparison.show(self.runs)
        lines = [table([dict(zip(view.head, row, strict=True)) for row in view.rows])]
        lines += [f"changed: {self.asked.changed}"] if self.asked.changed else []
        return "\n".join([*lines, *([self.uneven] if self.uneven else [])])

    @property
    def uneven(self) -> str:
        """A warning if means are over different seeds: finished runs of other experiments count, too."""
        numbers = sorted({len(each.by_seed) for each in self.runs})
        return f"Means are over {numbers[0]} to {numbers[-1]} seeds: compare them with care." if numbers[1:] else ""


def runs_of(cell: Cell, folders: Mapping[int, RunFolder], asked: Asked) -> Runs:
    config = configured(cell, 0, asked)
    in_order = dict(sorted(folders.items()))
    records = {seed: folder.metrics()[: config.rounds] for seed, folder in in_order.items()}
    made = {seed: folder.environment() for seed, folder in in_order.items()}
    names = (*ENVIRONMENT, FILES)
    machines = {seed: {name: about[name] for name in names if name in about} for seed, about in made.items()}
    return Runs(cell, config, records, machines)


def is_finished(folder: RunFolder, config: Config) -> bool:
    """Whether all rounds are measured. A finished run may have lost its checkpoint: it is large."""
    return len(folder.metrics()) >= config.rounds


def configured(cell: Cell, seed: int, asked: Asked) -> Config:
    rounds = [f"rounds={asked.rounds}"] if asked.rounds is not None else []
    return config_of(cell.preset, (*cell.settings, *asked.settings, *rounds, f"seed={seed}"))


def fits(cell: Cell, asked: Asked) -> bool:
    """Whether the settings asked for fit this cell: a cell that was not asked for may have another method."""
    with suppress(ConfigError):
        configured(cell, 0, asked)
        return True
    return False


def name_of(cell: Cell, seed: int, asked: Asked) -> str:
    """The run folder's name: the preset, and the settings that change it. Equal configurations share a folder."""
    config = configured(cell, seed, asked)
    settings = tuple(setting for setting in (*cell.settings, *asked.settings) if not setting.startswith("rounds="))
    rounds = (f"rounds={config.rounds}",) if depends_on_rounds(config) else ()
    return f"{_shortest_name(cell.preset, (*settings, *rounds))}_seed={seed}"


@cache
def _shortest_name(preset: str, settings: tuple[str, ...]) -> str:
    """The preset and the settings without which the configuration would be another one."""
    needed, wanted = settings, config_of(preset, settings)
    for setting in settings:
        others = tuple(other for other in needed if other != setting)
        with suppress(ConfigError):  # without this setting the configuration is refused: keep it
            if config_of(preset, others) == wanted:
                needed = others
    return folder_name([preset, *needed])


def check(folder: RunFolder, config: Config) -> None:
    """Refuse a folder with a run of another configuration or of other code."""
    check_same_run(folder, config)
    check_same_code(folder, config)


def unfinished(planned: Sequence[tuple[int, Cell, Config]], asked: Asked, runs: Path) -> list[PendingRun]:
    """The runs of an experiment that are still to be done; every folder is checked."""
    pending = []
    for seed, cell, config in planned:
        folder = RunFolder(runs / name_of(cell, seed, asked))
        check(folder, config)
        if not is_finished(folder, config):
            text = to_toml(as_table(config))
            pending.append(PendingRun(f"{cell.name}, seed {seed}", text, folder.path, asked.device))
    return pending


def hostile_of(config: Config, seed: int) -> set[int]:
    """The hostile clients of a run."""
    clients, hostile = config.federation.clients, config.federation.hostile
    return set(draw_attackers(Key(seed), clients, hostile, trusted_by(config.method)))


def kept(record: Record, hostile: Container[int] = ()) -> dict[str, Any]:
    """The round's metrics for a file; with vote weights also the share of hostile clients, and who else has none."""
    weights = {int(client): weight for client, weight in record.get("vote_weight", {}).items()}
    judged = {
        "hostile_weight": sum(weight for client, weight in weights.items() if client in hostile),
        "honest_without": sum(not weight for client, weight in weights.items() if client not in hostile),
    }
    whole = {**record, **(judged if weights else {})}  # records of an earlier file have no weights, but these two
    short = {name: round(value, 5) if isinstance(value, float) else value for name, value in whole.items()}
    return {name: short[name] for name in (*KEPT, *judged) if name in short}
