"""Atomic writes: a file appears complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ENDING = ".part"  # suffix of a file that is still being written


@contextmanager
def atomic_file(path: Path, *, secret: bool = False) -> Iterator[Path]:
    """Yield a temporary path. It replaces `path` once it is on the disk. `secret`: only the owner can read the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}{ENDING}")  # no other process writes there
    try:
        try:
            part.touch(0o600 if secret else 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # name the requested file
        mode = part.stat().st_mode
        yield part
        part.chmod(mode)  # undo libraries that make their files readable by the owner alone
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, content: str | bytes) -> None:
    with atomic_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def try_writing(path: Path) -> None:
    """Raise an OSError if the file cannot be written. Nothing changes on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    existed = path.exists()
    path.touch()
    if not existed:
        path.unlink()
