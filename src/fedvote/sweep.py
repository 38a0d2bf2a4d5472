"""One configuration over many values of some keys: a run folder each, a table, and the best."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedvote.config import read
from fedvote.core import ConfigError
from fedvote.draft import write
from fedvote.experiment import run
from fedvote.folder import RunFolder
from fedvote.progress import watch

GRIDS = {"paper-grid": ("1e-4", "3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1", "3e-1")}  # Appendix A-A


@dataclass(frozen=True)
class Point:
    """One run of a sweep: what was set, and what came out."""

    settings: tuple[str, ...]
    folder: Path
    record: dict[str, Any]


def points(over: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of `a.b=v1,v2,...`; a grid's name stands for its values."""
    axes = []
    for axis in over:
        key, equals, values = axis.partition("=")
        if not key or not equals or not values:
            raise ConfigError(
                f"--over {axis!r} is not of the form a.b=v1,v2,... or a.b=GRID; grids: {', '.join(GRIDS)}"
            )
        axes.append([f"{key}={value}" for value in GRIDS.get(values, tuple(values.split(",")))])
    return list(itertools.product(*axes))


def sweep(
    source: str, over: Sequence[str], settings: Sequence[str], out: Path, device: str = "auto"
) -> Iterator[Point]:
    """Run every point that is not done yet; yields each when it is."""
    planned = [
        (point, read(source, [*settings, *point])) for point in points(over)
    ]  # mistakes show before the first run
    for point, config in planned:
        folder = RunFolder(out / "_".join(point).replace("/", "-"))
        snapshots = run(config, folder, device=device, resume=True)
        for _ in watch(snapshots, config.rounds, folder.rounds_done()):
            pass
        yield Point(point, folder.path, folder.metrics()[-1])


def best(done: Sequence[Point]) -> Point:
    """The point whose deployed model is the most accurate after its last round."""
    return max(done, key=lambda point: point.record["accuracy"])


def save(done: Sequence[Point], file: Path) -> None:
    names = ("round", "accuracy", "accuracy_float", "loss", "uplink_bytes")
    rows = [{"settings": list(p.settings), **{name: p.record[name] for name in names}} for p in done]
    write(file, json.dumps({"best": list(best(done).settings), "runs": rows}, indent=2) + "\n")
