"""The head of a page about a run: its name, what trained it, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedvote.runs.folder import RunFolder
from fedvote.tasks.goal import Shown


def run_facts(run: Path, trust: bool) -> dict[str, Any]:
    """Title, facts and metric of a run folder, as `export_web` takes them; of a file, its name alone."""
    config = RunFolder(run, trust).config() if run.is_dir() else None
    if config is None:
        return {"title": run.resolve().stem}
    facts = {
        "data": Path(config.data.name).name,  # without the folders of this machine
        "model": Path(config.model.name).name,
        "clients": str(config.federation.clients),
    }
    rounds = RunFolder(run, trust).metrics()
    if not rounds:
        return {"title": run.resolve().name, "facts": facts}
    shown, last = Shown.of(rounds[-1]), rounds[-1]
    value = last.get(f"{shown.name}_calibrated")
    facts |= {"rounds": str(last["round"])}
    return {"title": run.resolve().name, "facts": facts, "metric": value and (shown.name, shown.text(value))}
