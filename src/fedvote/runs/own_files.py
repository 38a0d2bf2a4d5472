"""The user's own Python files that a configuration names, and their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedvote.runs.config import Config
from fedvote.runs.config_differences import flat
from fedvote.runs.folder import RunFolder
from fedvote.runs.toml_tables import as_table


def own_files(config: Config) -> dict[str, str]:
    """File -> digest, of the user's Python files that a configuration names."""
    names = [value.rpartition(":")[0] for value in flat(as_table(config)).values() if isinstance(value, str)]
    files = [Path(name) for name in names if name.endswith(".py") and Path(name).is_file()]
    return {str(file): digest(file) for file in files}


def digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def changed(folder: RunFolder, config: Config) -> list[str]:
    """The user's Python files that have changed since the run in the folder began."""
    before = folder.environment().get("files", {}) if folder.begun() else {}
    before = before if isinstance(before, dict) else {}
    return [file for file, now in own_files(config).items() if before.get(file, now) != now]
