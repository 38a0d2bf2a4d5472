"""Run experiments into a folder: their run folders, and the numbers, page and drawings of each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from fedvote.errors import ConfigError
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
    """Write the results so far after every run, then yield them; a second call resumes."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"there is no experiment {name!r}; known: {', '.join(EXPERIMENTS)}, or all of them: all")
    experiment = EXPERIMENTS[name]
    about = {"experiment": name, "about": experiment.about, "asked": dataclasses.asdict(asked)}
    about |= provenance(find_device(asked.device), range(asked.seeds))
    for found in experiment.measure(asked, out / RUNS):
        page = found.page()
        write(out / f"{name}.json", json.dumps({**about, **found.numbers()}) + "\n")
        write(out / f"{name}.html", page.html())
        for chart in page.charts:
            write(out / name / f"{chart.name}.svg", chart.svg())
        write(out / "index.html", index(out).html())
        yield found


def index(out: Path) -> Page:
    """The page of links to the experiments that have a page in this folder."""
    names = [name for name in EXPERIMENTS if (out / f"{name}.html").is_file()]
    links = [tag("li", tag("a", EXPERIMENTS[name].about, href=f"{name}.html")) for name in names]
    return Page("Figures, tables and experiments", {}, [section("Measured here", tag("ul", *links))], [])
