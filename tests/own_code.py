"""A user's own file, edited between two commands."""

from __future__ import annotations

import sys
from pathlib import Path

from fedvote.runs.own_files import digest
from fedvote.studies.experiments.cells import config_of


def edit(file: Path, text: str) -> None:
    """Write the file, and forget what this process knows of it: every command has a process of its own."""
    file.write_text(text)
    sys.modules.pop(str(file.resolve()), None)
    digest.cache_clear()
    config_of.cache_clear()
