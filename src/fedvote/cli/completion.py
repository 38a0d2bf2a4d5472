"""What shells offer when a word is completed. Nothing here imports torch: an answer has to come at once."""

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
    """Presets, with what each is for."""
    return list(catalogue("presets")["presets"].items())


def keys() -> list[str]:
    """Keys for --set, ready for a value."""
    return [f"{key}=" for key in configuration_keys()]


def run_folders(incomplete: str) -> list[str]:
    """Folders with a run that begin so, and those one level below. Where there are none, shells offer files."""
    found = (path for deep in ("*", "*/*") for path in iglob(f"{escape(incomplete)}{deep}/config.toml"))
    return sorted({str(Path(path).parent) for path in found})
