"""Integrity: a file is what was published, or the reason why not is said."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fedvote.data.files import File, inspect
from fedvote.system.atomic_file import write

Put = Callable[[str, bytes], File]


def test_a_known_digest_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    for digest in (
        "md5:900150983cd24fb0d6963f7d28e17f72",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ):
        status, content = inspect(File("abc", 3, digest), tmp_path)
        assert status.ok and content == b"abc"


def test_every_kind_of_damage_has_its_name(tmp_path: Path, put: Put) -> None:
    file = put("set/a", b"hello")
    assert inspect(file, tmp_path)[0].state == "present"
    (tmp_path / "set/a").write_bytes(b"hell")
    assert inspect(file, tmp_path)[0].state == "truncated"
    (tmp_path / "set/a").write_bytes(b"jello")
    assert inspect(file, tmp_path)[0].state == "wrong digest"
    (tmp_path / "set/a").write_bytes(b"hello!")
    assert inspect(file, tmp_path)[0].state == "wrong digest"
    (tmp_path / "set/a").unlink()
    assert inspect(file, tmp_path)[0].state == "missing"


def test_a_packed_copy_is_as_good_whatever_its_gzip_header(tmp_path: Path, put: Put) -> None:
    file = put("a", b"hello")
    (tmp_path / "a").unlink()
    for mtime in (0, 1504176606):
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello", mtime=mtime))
        status, content = inspect(file, tmp_path)
        assert status.ok and content == b"hello"


def test_a_packed_copy_cut_short_is_truncated(tmp_path: Path, put: Put) -> None:
    file = put("a", bytes(range(256)))
    (tmp_path / "a").rename(tmp_path / "plain")
    packed = gzip.compress(bytes(range(256)))
    for cut in (1, 5, 100, len(packed) - 1):
        (tmp_path / "a.gz").write_bytes(packed[:cut])
        assert inspect(file, tmp_path)[0].state == "truncated"


def test_a_good_copy_wins_over_a_damaged_one(tmp_path: Path, put: Put) -> None:
    file = put("a", b"hello")
    (tmp_path / "a").write_bytes(b"he")
    assert inspect(file, tmp_path)[0].state == "truncated"
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello"))
    assert inspect(file, tmp_path)[0].ok


def test_the_words_name_file_found_and_expected(tmp_path: Path, put: Put) -> None:
    file = put("a", b"hello")
    (tmp_path / "a").write_bytes(b"he")
    assert str(inspect(file, tmp_path)[0]) == f"{tmp_path / 'a'} is truncated (2 bytes; expected 5)"


def test_writing_replaces_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "new" / "a", b"old")

    def full_disk(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path / "new" / "a", b"new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]
    assert (tmp_path / "new" / "a").read_bytes() == b"old"
