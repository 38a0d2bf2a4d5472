"""Shell completion: the words offered for each argument. Nothing here imports torch, so answers come at once."""

from __future__ import annotations

from collections.abc import Callable
from glob import escape, iglob
from pathlib import Path

from fedvote.cli.source_names import configuration_keys, names_in
from fedvote.runs.catalogue import REGISTRIES, catalogue


def one_of(*words: str) -> Callable[[], list[str]]:
    return lambda: list(words)


def names_of(kind: str, *more: str) -> Callable[[], list[str]]:
    """The names that `fedvote list KIND` shows."""
    return lambda: [*names_in(REGISTRIES[kind]), *more]


def presets() -> list[tuple[str, str]]:
    """Presets, each with its description."""
    return list(catalogue("presets")["presets"].items())


def keys() -> list[str]:
    """Keys for --set, ready for a value."""
    return [f"{key}=" for key in configuration_keys()]


def run_folders(incomplete: str) -> list[str]:
    """Run folders that begin with `incomplete`, or lie one level below. If there are none, shells offer files."""
    found = (path for pattern in ("*", "*/*") for path in iglob(f"{escape(incomplete)}{pattern}/config.toml"))
    return sorted({str(Path(path).parent) for path in found})
