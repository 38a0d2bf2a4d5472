"""A file that a dataset needs: where it lies, how long it is, and the digest that its content must have."""

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
    """Size and digest are of the content: `path` itself, or `path`.gz unpacked, because gzip headers vary."""

    path: str  # below the data folder
    nbytes: int
    digest: str  # "sha256:..." or "md5:...", whichever the publisher gives or the published file was measured with

    def copies(self, folder: Path) -> list[Path]:
        """Where it is: plain, packed, both or nowhere."""
        plain = folder / self.path
        return [path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()]


@dataclass(frozen=True)
class Status:
    """What became of one expected file, in words that a user can act on."""

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
    """The digest of the content, made with the algorithm that `like` names before its colon."""
    kind = like.partition(":")[0]
    return f"{kind}:{hashlib.new(kind, content, usedforsecurity=False).hexdigest()}"


def judge(content: bytes, file: File, path: Path) -> Status:
    """Whether the content is that of the file, wherever the content came from."""
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
    """The file's status and its content. Of a plain and a packed copy, a good one wins."""
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
