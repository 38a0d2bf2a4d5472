"""Reports: one self-contained web page about one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.report.page import page
from fedvote.report.read_run import read_runs
from fedvote.system.atomic_file import write

__all__ = ["write_report"]


def write_report(folders: Sequence[Path], out: Path) -> Path:
    """Write the page about these run folders to `out`, atomically; returns `out`."""
    text = page(read_runs(folders))
    if out.is_dir():
        raise ConfigError(f"{out} is a folder, expected a file: give a name such as {out / 'report.html'}.")
    write(out, text)
    return out
