"""The user's own Python files that a configuration names, and their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.runs.config import Config
from fedvote.runs.folder import RunFolder
from fedvote.runs.toml_tables import as_table
from fedvote.system.own_code import files_in

FILES = "files"  # in environment.json: file -> digest


def own_files(config: Config) -> dict[str, str]:
    """File -> digest, of the user's Python files that a configuration names."""
    return {file: digest(Path(file)) for file in files_in(as_table(config)) if Path(file).is_file()}


@cache
def digest(file: Path) -> str:
    """The digest when this process first saw the file: it runs that code to its end, even if the file changes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def changed(folder: RunFolder, config: Config) -> list[str]:
    """The user's Python files that have changed since the run in the folder began."""
    before = _digests(folder.environment()) if folder.begun() else {}
    return [file for file, now in own_files(config).items() if before.get(file, now) != now]


def others_than_made(files: Iterable[str], environment: Mapping[str, object]) -> list[str]:
    """The files that are missing here, or not known to be those that made a run in this environment."""
    made = _digests(environment)
    return [file for file in files if not Path(file).is_file() or made.get(file) != digest(Path(file))]


def check_same_code(folder: RunFolder, config: Config) -> None:
    """Refuse a run that other code began: its curve beside those of today's code would compare two programs as one."""
    files = own_files(config)
    if folder.begun() and (others := others_than_made(files, folder.environment())):
        raise ConfigError(
            f"{folder.path} holds a run that was not made by {others[0]} as it is now: restore the file, choose "
            "another folder with --out, or delete this one to run it again"
        )


def _digests(environment: Mapping[str, object]) -> Mapping[str, str]:
    found = environment.get(FILES)
    return found if isinstance(found, dict) else {}
