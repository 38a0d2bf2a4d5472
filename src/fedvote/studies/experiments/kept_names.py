"""Rows and columns keep the meaning of their names, whatever `--set` changes in all runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from fedvote.errors import ConfigError
from fedvote.runs.config import Config
from fedvote.studies.experiments.cells import Cell, config_of

ROUNDS = "rounds"  # views show how many a run has
INSTEAD = "leave it out, or compare its runs in an experiment of your own, FILE.py:NAME"


def check_names_kept(cells: Sequence[Cell], wanted: Sequence[Cell], settings: Sequence[str]) -> None:
    """Refuse settings that undo what the wanted cells are named after, such as another method for all.

    Cells are named after the keys in which they differ. A key that all cells set alike may be set to another value, and
    a part that a cell names may get other settings, unless that makes it a neighbour: the title says so.
    """
    by_key = [dict(map(_key_and_value, cell.settings)) for cell in cells]
    different = {key for each in by_key for key in each if len({other.get(key) for other in by_key}) > 1} - {ROUNDS}
    for setting in settings:
        key, _ = _key_and_value(setting)
        for cell in wanted:
            own = [each for each, _ in map(_key_and_value, cell.settings) if each in different]
            if key == "method" or any(f"{each}.".startswith(f"{key}.") for each in own):
                raise ConfigError(
                    f"--set {setting} replaces what sets {cell.name!r} apart from other rows or columns: {INSTEAD}"
                )
            if key in different and (other := _becomes(cell, setting, cells, settings)):
                raise ConfigError(f"--set {setting} makes {cell.name!r} the run of {other.name!r}: {INSTEAD}")


def _becomes(cell: Cell, setting: str, cells: Sequence[Cell], settings: Sequence[str]) -> Cell | None:
    """Another cell of this row or column, whose run this cell's becomes by the setting: it is named after a default."""
    without = [each for each in settings if each != setting]
    before, now = _made(cell, without), _made(cell, settings)
    beside = (other for other in cells if other.row == cell.row or other.column == cell.column)
    return next((other for other in beside if before != now == _made(other, without)), None) if now else None


def _key_and_value(setting: str) -> tuple[str, str]:
    """`method.name` is the same key as `method`."""
    key, _, value = setting.partition("=")
    return key.removesuffix(".name"), value


def _made(cell: Cell, settings: Sequence[str]) -> Config | None:
    """The configuration of a cell with these settings; None if they do not fit it."""
    with suppress(ConfigError):
        return config_of(cell.preset, (*cell.settings, *settings))
    return None
