"""Files that a dataset needs, and the checks of their size and digest."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["present", "missing", "truncated", "wrong digest", "damaged"]


@dataclass(frozen=True)
class File:
    """A file that may be stored plain or as `path`.gz. Size and digest are of the unpacked content."""

    path: str  # below the data folder
    nbytes: int
    digest: str  # "sha256:..." or "md5:..."

    def copies(self, folder: Path) -> list[Path]:
        """The copies in the folder: plain, packed, both or none."""
        plain = folder / self.path
        return [path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()]


@dataclass(frozen=True)
class Status:
    """The state of one expected file."""

    path: Path
    state: State
    found: str = ""
    expected: str = ""

    @property
    def ok(self) -> bool:
        return self.state == "present"

    def __str__(self) -> str:
        return f"{self.path} is {self.state}" + (f" ({self.found}; expected {self.expected})" if self.found else "")


def digest_of(content: bytes, like: str) -> str:
    """The digest of the content, by the algorithm of `like`."""
    kind = like.partition(":")[0]
    return f"{kind}:{hashlib.new(kind, content, usedforsecurity=False).hexdigest()}"


def judge(content: bytes, file: File, path: Path) -> Status:
    """Compare content with the expected size and digest. `path` names the content in the status."""
    if len(content) < file.nbytes:
        return Status(path, "truncated", f"{len(content)} bytes", f"{file.nbytes}")
    found = digest_of(content, like=file.digest)
    if found != file.digest:
        return Status(path, "wrong digest", _short(found), _short(file.digest))
    return Status(path, "present")


def _short(digest: str) -> str:
    kind, _, value = digest.partition(":")
    return f"{kind} {value[:12]}..."


def inspect(file: File, folder: Path) -> tuple[Status, bytes]:
    """The status and content of a file. If one of its copies is intact, that one counts."""
    results = []
    for path in file.copies(folder):
        results.append(_inspect_at(path, file))
        if results[-1][0].ok:
            return results[-1]
    return results[0] if results else (Status(folder / file.path, "missing"), b"")


def _inspect_at(path: Path, file: File) -> tuple[Status, bytes]:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return Status(path, "truncated", f"it does not unpack: {error}", f"{file.nbytes} bytes in it"), b""
    except OSError as error:
        return Status(path, "damaged", f"it cannot be read: {error.strerror}", f"{file.nbytes} bytes"), b""
    return judge(content, file, path), content
