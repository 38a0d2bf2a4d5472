"""A local publisher that can misbehave, and datasets small enough to count by hand."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from fedvote.core import Dataset, Examples
from fedvote.data.download import Remote
from fedvote.data.files import File


class Publisher(ThreadingHTTPServer):
    """Serves `content` by path. `cut_after` bytes it hangs up; without `ranges` it ignores the Range header."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: dict[str, bytes] = {}
        self.cut_after: int | None = None
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def remote(self, path: str, content: bytes) -> Remote:
        self.content[f"/{path}"] = content
        return Remote(self.url(path), len(content), f"md5:{hashlib.md5(content).hexdigest()}")


class Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.asked.append((self.path, wanted))
        body = self.server.content.get(self.path)
        if body is None:
            return self.send_error(404)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(body):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = len(body) if self.server.cut_after is None else start + self.server.cut_after
        self.wfile.write(body[start:end])

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], File]:
    """Write a file below the data folder and describe it as the published one."""

    def write(path: str, content: bytes) -> File:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return File(path, len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")

    return write


def labelled(y: list[int] | np.ndarray, classes: int, writers: list[int] | None = None) -> Dataset:
    """A dataset of which only the labels matter."""
    labels = torch.as_tensor(np.asarray(y, dtype=np.int64))
    x = torch.zeros(len(labels), 1, 2, 2, dtype=torch.uint8)
    examples = Examples(x, labels)
    by = None if writers is None else torch.tensor(writers)
    return Dataset("toy", examples, examples, tuple(str(c) for c in range(classes)), by)


@pytest.fixture(scope="session")
def toy() -> Callable[..., Dataset]:
    return labelled
