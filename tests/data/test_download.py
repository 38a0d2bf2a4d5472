"""Downloads, against a publisher on this machine: resumed, checked, whole or not at all."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedvote.data.download import ATTEMPTS, Remote, fetch
from fedvote.errors import DataError

CONTENT = bytes(range(256)) * 1000


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_and_progress_is_told(tmp_path: Path, publisher: Any) -> None:
    seen: list[tuple[int, int]] = []
    fetch(publisher.remote("a", CONTENT), tmp_path / "sub" / "a", "", lambda *told: seen.append(told))
    assert (tmp_path / "sub" / "a").read_bytes() == CONTENT
    assert names(tmp_path / "sub") == ["a"]
    assert seen[-1] == (256000, 256000) and seen == sorted(seen) and len(seen) > 1


def test_a_cut_connection_is_resumed_from_where_it_broke(tmp_path: Path, publisher: Any) -> None:
    remote = publisher.remote("a", CONTENT)
    publisher.cut_after = 100_000
    fetch(remote, tmp_path / "a", "")
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert [wanted for _, wanted in publisher.asked] == [None, "bytes=100000-", "bytes=200000-"]


def test_a_publisher_that_keeps_hanging_up_leaves_a_part_to_go_on_from(tmp_path: Path, publisher: Any) -> None:
    remote = publisher.remote("a", CONTENT)
    publisher.cut_after = 1000
    with pytest.raises(DataError, match="5000 of 256000 bytes are here: run it again"):
        fetch(remote, tmp_path / "a", "")
    assert names(tmp_path) == ["a.part"] and len(publisher.asked) == ATTEMPTS
    publisher.cut_after = None
    fetch(remote, tmp_path / "a", "")
    assert publisher.asked[-1] == ("/a", "bytes=5000-")
    assert (tmp_path / "a").read_bytes() == CONTENT and names(tmp_path) == ["a"]


def test_a_publisher_that_ignores_ranges_sends_it_all_again(tmp_path: Path, publisher: Any) -> None:
    remote = publisher.remote("a", CONTENT)
    publisher.ranges = False
    (tmp_path / "a.part").write_bytes(b"\xff" * 5000)
    fetch(remote, tmp_path / "a", "")
    assert publisher.asked == [("/a", "bytes=5000-")]
    assert (tmp_path / "a").read_bytes() == CONTENT


def test_a_wrong_digest_leaves_nothing_new_and_keeps_what_was_there(tmp_path: Path, publisher: Any) -> None:
    remote = replace(publisher.remote("a", CONTENT), digest="md5:" + "0" * 32)
    (tmp_path / "a").write_bytes(b"earlier")
    with pytest.raises(DataError, match=r"has md5:\w+, expected md5:0{32}: try again later, or do this"):
        fetch(remote, tmp_path / "a", "do this")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"earlier"


@pytest.mark.parametrize("stale", [b"\xff" * 5000, b"\xff" * 300_000], ids=["shorter", "longer"])
def test_a_part_of_another_file_is_not_resumed_twice(tmp_path: Path, publisher: Any, stale: bytes) -> None:
    remote = publisher.remote("a", CONTENT)
    (tmp_path / "a.part").write_bytes(stale)
    with pytest.raises(DataError, match="expected md5"):
        fetch(remote, tmp_path / "a", "")
    fetch(remote, tmp_path / "a", "")
    assert (tmp_path / "a").read_bytes() == CONTENT


def test_a_published_file_that_shrank_is_refused(tmp_path: Path, publisher: Any) -> None:
    remote = replace(publisher.remote("a", CONTENT), nbytes=len(CONTENT) + 1)
    with pytest.raises(DataError, match="answered 416"):
        fetch(remote, tmp_path / "a", "")
    assert names(tmp_path) == []


def test_a_file_that_is_there_is_not_asked_for(tmp_path: Path, publisher: Any) -> None:
    remote = publisher.remote("a", CONTENT)
    (tmp_path / "a").write_bytes(CONTENT)
    fetch(remote, tmp_path / "a", "")
    assert publisher.asked == []


def test_a_file_the_publisher_does_not_have_says_so(tmp_path: Path, publisher: Any) -> None:
    remote = Remote(publisher.url("gone"), 3, "md5:0")
    with pytest.raises(DataError, match=r"/gone answered 404 Not Found: put it here yourself\.$"):
        fetch(remote, tmp_path / "a", "put it here yourself")


def test_offline_says_which_host_and_what_to_do_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = closed.getsockname()[1]
        with pytest.raises(DataError, match=rf"^cannot reach 127.0.0.1:{port} \(.*\): put a in b yourself\.$"):
            fetch(Remote(f"http://127.0.0.1:{port}/a", 3, "md5:0"), tmp_path / "a", "put a in b yourself")
    assert names(tmp_path) == []
