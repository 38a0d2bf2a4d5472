"""Run experiments into a folder: their run folders, and the numbers, page and drawings of each."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedvote.contracts import kind
from fedvote.errors import ConfigError, did_you_mean
from fedvote.report.chart import Page
from fedvote.report.markup import tag
from fedvote.report.sections import section
from fedvote.runs.environment import provenance
from fedvote.studies.experiments import EXPERIMENTS, Asked, Experiment, Found
from fedvote.studies.experiments.contract import ignored_by
from fedvote.system.atomic_file import write
from fedvote.system.device import find_device
from fedvote.system.own_code import absolute_name, own_object

RUNS = "runs"


def report_on(name: str, asked: Asked, out: Path) -> str:
    """Run an experiment to its end; returns its table as text."""
    *_, found = reproduce(name, asked, out)
    return f"{named(name).about}\n{found.text()}\npage: {out / f'{file_name(name)}.html'}"


def named(name: str) -> Experiment:
    """An experiment of the package, or the user's own as FILE.py:NAME."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    if ":" not in name:
        known = f"{', '.join(EXPERIMENTS)}, all of them: all, or your own as FILE.py:NAME"
        raise ConfigError(f"there is no experiment {name!r}; known: {known}{did_you_mean(name, EXPERIMENTS)}")
    found = own_object(name, "experiment")
    if not isinstance(found, Experiment):
        raise ConfigError(f"experiment {name!r} is {kind(found)}, expected a Comparison: docs/adding.md")
    return found


def file_name(name: str) -> str:
    """The name of an experiment's files. The user's own has a dot, as no other has: nothing is overwritten."""
    file, _, attribute = name.rpartition(":")
    return f"{Path(file).stem}.{attribute}" if file else name


def reproduce(name: str, asked: Asked, out: Path) -> Iterator[Found]:
    """Write the results so far and yield them, after every run; a second call resumes.

    Writing takes at most a tenth of the time: results of a thousand cells are not written after each.
    """
    experiment, file = named(name), file_name(name)
    for field, option in (("settings", "--set"), ("rounds", "--rounds")):
        if getattr(asked, field) and field in ignored_by(experiment):
            raise ConfigError(f"{option} changes nothing in {name}: leave it out")
    about = {
        "experiment": absolute_name(name),
        "about": asked.titled(experiment.about),
        "asked": dataclasses.asdict(asked),
    }
    about |= provenance(find_device(asked.device), range(asked.seeds))
    unwritten, due = None, 0.0
    for found in experiment.measure(asked, out / RUNS):
        unwritten = found
        if (start := time.monotonic()) >= due:
            write_found(file, found, about, out)
            unwritten, due = None, time.monotonic() + 9 * (time.monotonic() - start)
        yield found
    if unwritten is not None:
        write_found(file, unwritten, about, out)


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
    pages = {name: each.about for name, each in EXPERIMENTS.items() if (out / f"{name}.html").is_file()}
    own = sorted({page.stem for page in out.glob("*.*.html")} - EXPERIMENTS.keys())
    pages |= {name: name for name in own}
    links = [tag("li", tag("a", about, href=f"{name}.html")) for name, about in pages.items()]
    return Page("Figures, tables and experiments", {}, [section("Measured here", tag("ul", *links))], [])
