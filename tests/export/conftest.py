"""A package that stands for ONNX Runtime Web where nobody runs it, and quick translations."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from fedvote.data.download import file_digest
from fedvote.export.web import browser_runtime
from fedvote.export.web.browser_runtime import MODULE, PACKAGE, PROGRAM


@pytest.fixture(autouse=True, scope="session")
def _quickly(translated_once: None) -> None:
    """Every test of this folder."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a module and a program of a few bytes, whose digest is the expected one."""
    path = tmp_path / "made" / PACKAGE
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, content in ((MODULE, b"export {};\n//# sourceMappingURL=a.map"), (PROGRAM, b"\0asm"), ("other", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(browser_runtime, "DIGEST", file_digest(path, "sha512:"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return path
