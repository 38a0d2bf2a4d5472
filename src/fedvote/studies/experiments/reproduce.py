"""Run experiments into a folder: their run folders, and the numbers, page and drawings of each."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.registry import did_you_mean
from fedvote.report.chart import Page
from fedvote.report.markup import tag
from fedvote.report.sections import section
from fedvote.runs.environment import provenance
from fedvote.studies.experiments import EXPERIMENTS, Asked, Found
from fedvote.system.atomic_file import write
from fedvote.system.device import find_device

RUNS = "runs"


def report_on(name: str, asked: Asked, out: Path) -> str:
    """Run an experiment to its end; returns its table as text."""
    *_, found = reproduce(name, asked, out)
    return f"{EXPERIMENTS[name].about}\n{found.text()}\npage: {out / f'{name}.html'}"


def reproduce(name: str, asked: Asked, out: Path) -> Iterator[Found]:
    """Write the results so far and yield them, after every run; a second call resumes.

    Writing takes at most a tenth of the time: results of a thousand cells are not written after each.
    """
    if name not in EXPERIMENTS:
        known = f"{', '.join(EXPERIMENTS)}, or all of them: all"
        raise ConfigError(f"there is no experiment {name!r}; known: {known}{did_you_mean(name, EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    about = {"experiment": name, "about": asked.titled(experiment.about), "asked": dataclasses.asdict(asked)}
    about |= provenance(find_device(asked.device), range(asked.seeds))
    unwritten, due = None, 0.0
    for found in experiment.measure(asked, out / RUNS):
        unwritten = found
        if (start := time.monotonic()) >= due:
            write_found(name, found, about, out)
            unwritten, due = None, time.monotonic() + 9 * (time.monotonic() - start)
        yield found
    if unwritten is not None:
        write_found(name, unwritten, about, out)


def write_found(name: str, found: Found, about: Mapping[str, Any], out: Path) -> None:
    """Write the numbers, page and drawings of an experiment, and the page of links."""
    page = found.page()
    write(out / f"{name}.json", json.dumps({**about, **found.numbers()}) + "\n")
    write(out / f"{name}.html", page.html())
    for chart in page.charts:
        write(out / name / f"{chart.name}.svg", chart.svg())
    write(out / "index.html", index(out).html())


def index(out: Path) -> Page:
    """The page of links to the experiments that have a page in this folder."""
    names = [name for name in EXPERIMENTS if (out / f"{name}.html").is_file()]
    links = [tag("li", tag("a", EXPERIMENTS[name].about, href=f"{name}.html")) for name in names]
    return Page("Figures, tables and experiments", {}, [section("Measured here", tag("ul", *links))], [])
