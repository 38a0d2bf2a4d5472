"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ENDING = ".part"  # of the name of a file that is being written


@contextmanager
def atomic_file(path: Path, *, secret: bool = False) -> Iterator[Path]:
    """Where to write what is to be in `path`; it takes that place when all of it is on the disk.

    `secret`: for the owner's eyes alone, from the first byte.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}{ENDING}")  # no other process writes there
    try:
        try:
            part.touch(0o600 if secret else 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name that was asked for
        mode = part.stat().st_mode
        yield part
        part.chmod(mode)  # as all files here: some libraries let nobody else read what they write
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> None:
    with atomic_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def try_writing(path: Path) -> None:
    """An OSError if nothing can be written there; otherwise nothing is changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.exists()
    path.touch()
    if not there:
        path.unlink()
