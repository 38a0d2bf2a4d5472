"""Sweeps: one configuration run with many values of some keys."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedvote.core import Dataset
from fedvote.engines.uncounted import uncounted
from fedvote.errors import ConfigError, Doubt, FedVoteError
from fedvote.runs.config import Config, read
from fedvote.runs.experiment import configured_data, federation
from fedvote.runs.folder import RunFolder
from fedvote.runs.own_files import check_same_code
from fedvote.runs.progress import traffic_text, watch
from fedvote.runs.simulated_run import run
from fedvote.runs.toml_tables import in_order
from fedvote.tasks.shown_metric import Shown

SEPARATOR = re.compile(r",(?![^\[]*\])")  # commas outside brackets
TABLE = "sweep.json"  # the sweep's table, in its folder
LONGEST = 180  # characters of a run folder's name, before its seed
GRIDS = {"paper-grid": ("1e-4", "3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1", "3e-1")}  # Appendix A-A


@dataclass(frozen=True)
class Point:
    """One run of a sweep: its settings and its records."""

    settings: tuple[str, ...]
    folder: Path
    records: Sequence[Mapping[str, Any]]  # of every round
    config: Config

    @property
    def validated(self) -> bool:
        """Whether it was judged on held-out training examples, not on the test examples."""
        return self.config.data.validation > 0

    @property
    def shown(self) -> Shown:
        return Shown.of(self.records[-1])

    @property
    def quality(self) -> float:
        """The deployed network's metric, such as its accuracy, after the last round."""
        value = self.records[-1][self.shown.name]
        return math.nan if value is None else float(value)

    @property
    def lost(self) -> int:
        """Rounds that counted no message, such as when a learning rate makes all weights diverge."""
        return sum(map(uncounted, self.records))

    def sent(self, way: str) -> int:
        """Bytes of all clients in all rounds; `way`: up or down."""
        return sum(record[f"{way}link_bytes"] for record in self.records)

    def __str__(self) -> str:
        lost = f"  in {self.lost} of {len(self.records)} rounds no message counted" if self.lost else ""
        sent = traffic_text(self.sent("up"), self.sent("down"))
        return f"{' '.join(self.settings):40}  {self.shown.name} {self.shown.text(self.quality):>6}  {sent}{lost}"


def points(over: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of the values in `a.b=v1,v2,...`; a grid's name stands for its values."""
    axes = []
    for axis in over:
        key, equals, values = axis.partition("=")
        if not key or not equals or not values:
            raise ConfigError(
                f"--over {axis!r} is not of the form a.b=v1,v2,... or a.b=GRID; grids: {', '.join(GRIDS)}"
            )
        axes.append([f"{key}={value}" for value in GRIDS.get(values) or SEPARATOR.split(values)])
    keys = [_key(axis[0]) for axis in axes]
    for repeated in ({key for key in keys if keys.count(key) > 1}, *({v for v in a if a.count(v) > 1} for a in axes)):
        if repeated:
            raise ConfigError(f"--over has {', '.join(sorted(repeated))} twice, expected every key and value once")
    return list(itertools.product(*axes))


def _key(setting: str) -> str:
    return setting.partition("=")[0]


def folder_name(words: Sequence[str]) -> str:
    """A folder name made of these words, plus a checksum if characters had to be replaced or cut."""
    whole = "_".join(words)
    name = re.sub(r"[^\w.=,-]+", "-", whole)[:LONGEST]
    return name if name == whole else f"{name}_{zlib.crc32(whole.encode()):08x}"


def sweep(
    source: str, over: Sequence[str], settings: Sequence[str], out: Path, device: str = "auto"
) -> Iterator[Point]:
    """Run every point that is not finished yet; yields each point when it is.

    A folder with the table of another sweep is refused, unless this sweep has all of its points.
    """
    if both := {_key(setting) for setting in settings}.intersection(map(_key, over)):
        raise ConfigError(f"--set and --over both set {', '.join(sorted(both))}, expected one of them: leave out --set")
    # read all configurations and build all federations first: mistakes must show before the first run
    planned = [(point, read(source, in_order([*settings, *point]))) for point in points(over)]
    _check_table(out, [point for point, _ in planned])
    load = lru_cache(maxsize=1)(configured_data)  # points share their data
    for point, config in planned:
        check_same_code(RunFolder(out / folder_name(point)), config)
        _check_federation(point, config, device, load(config.data))
    for point, config in planned:
        folder = RunFolder(out / folder_name(point))
        snapshots = run(config, folder, device=device, resume=True, data=load(config.data))
        for _ in watch(snapshots, config.rounds, folder.metrics_before_resume()):
            pass
        yield Point(point, folder.path, folder.metrics(), config)


def _check_federation(point: tuple[str, ...], config: Config, device: str, data: Dataset) -> None:
    """Refuse a point whose parts do not fit together, such as a partition that asks for too many examples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)  # its run warns
        try:
            federation(config, device, data)
        except FedVoteError as error:
            raise ConfigError(f"{' '.join(point)} cannot run: {error}") from error


def _check_table(out: Path, planned: Collection[tuple[str, ...]]) -> None:
    """Refuse a sweep that would drop points of the folder's table."""
    saved = _saved_points(out / TABLE)
    dropped = [point for point in saved if point not in planned]
    if dropped:
        raise ConfigError(
            f"{out / TABLE} has the results of {len(saved)} runs, and this sweep has only {len(saved) - len(dropped)} "
            f"of them, without {' '.join(dropped[0])}: choose another folder with --out, or repeat the old command, "
            "with more values or rounds if you like"
        )


def _saved_points(file: Path) -> list[tuple[str, ...]]:
    """The settings of every run in a sweep's table; none if there is no table, or none that can be read."""
    try:
        return [tuple(map(str, row["settings"])) for row in json.loads(file.read_text(encoding="utf-8"))["runs"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
