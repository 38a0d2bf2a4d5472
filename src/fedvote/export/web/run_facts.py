"""The head of a page about a run: its name, what trained it, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedvote.core import Task
from fedvote.runs.folder import EVALUATION, RunFolder
from fedvote.runs.json_table import read_table
from fedvote.tasks.shown_metric import Shown


def run_facts(run: Path, trust: bool) -> dict[str, Any]:
    """Title, facts, task and metric of a run folder, as `export_web` takes them; of a file, its name alone."""
    config = RunFolder(run, trust).config() if run.is_dir() else None
    if config is None:
        return {"title": run.resolve().stem}
    facts = {
        "data": Path(config.data.name).name,  # without the folders of this machine
        "model": Path(config.model.name).name,
        "clients": str(config.federation.clients),
    }
    rounds = RunFolder(run, trust).metrics()
    head = {"title": run.resolve().name, "task": task_of(run)}
    if not rounds:
        return {**head, "facts": facts}
    shown, last = Shown.of(rounds[-1]), rounds[-1]
    value = last.get(f"{shown.name}_calibrated")
    facts |= {"rounds": str(last["round"])}
    on = "held-out training data" if config.data.validation else "the test data"
    metric = None if value is None else (f"{shown.name} on {on}", shown.text(value))
    return {**head, "facts": facts, "metric": metric}


def task_of(run: Path) -> Task | None:
    """The task, as the evaluation at the end of the run shows it; None if there is none."""
    if not (run / EVALUATION).is_file():
        return None
    found = read_table(run / EVALUATION)
    return "classification" if "confusion" in found else "multi-label" if "by_class" in found else "regression"
