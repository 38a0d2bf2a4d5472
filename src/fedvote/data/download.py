"""Downloads that resume after a broken connection and are checked against a digest before they are put in place."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

from fedvote.errors import DataError

Progress = Callable[[int, int], None]
"""Called with the number of bytes received and the total number of bytes."""

ATTEMPTS = 5
TIMEOUT_SECONDS = 30
CHUNK_NBYTES = 1 << 16


@dataclass(frozen=True)
class Remote:
    """A file on a publisher's server. Size and digest are of the file as transferred."""

    url: str
    nbytes: int
    digest: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


def fetch(remote: Remote, target: Path, otherwise: str, progress: Progress | None = None) -> None:
    """Download to `target`, resuming an earlier attempt. `otherwise`: advice for a user who is offline."""
    if target.is_file() and file_digest(target, remote.digest) == remote.digest:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    _receive_all(remote, part, otherwise, progress)
    found = file_digest(part, remote.digest)
    if found != remote.digest:
        part.unlink()  # do not resume from untrusted bytes
        raise DataError(f"{remote.url} has {found}, expected {remote.digest}: try again later, or {otherwise}.")
    part.replace(target)


def _receive_all(remote: Remote, part: Path, otherwise: str, progress: Progress | None) -> None:
    """Retry from where the connection broke until all bytes are there."""
    for _ in range(ATTEMPTS):
        if _nbytes(part) >= remote.nbytes:
            return
        try:
            _receive(remote, part, progress)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # the part is longer than the server's file: not the same file
                part.unlink(missing_ok=True)
            raise DataError(f"{remote.url} answered {error.code} {error.reason}: {otherwise}.") from error
        except urllib.error.URLError as error:
            raise DataError(f"cannot reach {remote.host} ({error.reason}): {otherwise}.") from error
        except (HTTPException, ConnectionError, TimeoutError):
            continue
    if _nbytes(part) < remote.nbytes:
        done = f"{_nbytes(part)} of {remote.nbytes} bytes"
        raise DataError(f"{remote.host} broke off {ATTEMPTS} times, {done} are here: run it again to resume.")


def _receive(remote: Remote, part: Path, progress: Progress | None) -> None:
    done = _nbytes(part)
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        if not _resumes(response, done):
            done = 0
        with part.open("ab" if done else "wb") as file:
            # one byte too many is enough for the digest to show a wrong file
            while done <= remote.nbytes and (chunk := response.read(CHUNK_NBYTES)):
                file.write(chunk)
                done += len(chunk)
                if progress:
                    progress(min(done, remote.nbytes), remote.nbytes)


def _resumes(response: HTTPResponse, done: int) -> bool:
    """Whether the server honours the Range header. It may send the whole file instead."""
    return response.status == 206 and (response.headers["Content-Range"] or "").startswith(f"bytes {done}-")


def _nbytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def file_digest(path: Path, like: str) -> str:
    """The digest of a file, read in pieces, by the algorithm of `like`."""
    kind = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{kind}:{hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()}"
