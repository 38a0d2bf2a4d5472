"""CIFAR-10 from both published formats: the same images, safely read, whole or refused."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedvote.data.cifar10 import BINARY, CIFAR10, PYTHON, parse_python
from fedvote.data.files import File
from fedvote.errors import DataError

NAMES = ["data_batch_1", "data_batch_2", "test_batch"]


def batch(seed: int) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (2, 3072), dtype=np.uint8), rng.integers(0, 10, 2).tolist()


def as_binary(x: np.ndarray, y: list[int]) -> bytes:
    return b"".join(bytes([label]) + row.tobytes() for row, label in zip(x, y, strict=True))


def as_python(x: np.ndarray, y: list[int]) -> bytes:
    return pickle.dumps({b"data": x, b"labels": y, b"batch_label": b"training batch"}, protocol=3)


@pytest.fixture
def source(put: Callable[[str, bytes], File]) -> CIFAR10:
    """Both formats, three batches of two images each."""
    binary = [put(f"cifar-10-batches-bin/{name}.bin", as_binary(*batch(i))) for i, name in enumerate(NAMES)]
    python = [put(f"cifar-10-batches-py/{name}", as_python(*batch(i))) for i, name in enumerate(NAMES)]
    return CIFAR10(files=tuple(binary), python_files=tuple(python))


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_a_record_is_a_label_then_three_planes(source: CIFAR10, tmp_path: Path) -> None:
    data = source.load(tmp_path)
    assert data.shape == (3, 32, 32) and len(data.train) == 4 and len(data.test) == 2
    x, y = batch(1)
    assert data.train.y[2:].tolist() == y
    assert data.train.x[2, 1, 0, :3].tolist() == x[0, 1024:1027].tolist()
    assert data.train.x.dtype == torch.uint8 and len(data.train.mean) == len(data.train.std) == 3


def test_both_formats_give_the_same_dataset(source: CIFAR10, tmp_path: Path) -> None:
    binary = source.load(tmp_path)
    remove(tmp_path / "cifar-10-batches-bin")
    assert source.expected(tmp_path) is source.python_files
    python = source.load(tmp_path)
    for one, other in ((binary.train, python.train), (binary.test, python.test)):
        assert torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def test_a_pickle_can_only_make_arrays(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "evil"),)

    with pytest.raises(DataError, match=r"asks for \w+\.mkdir, expected a numpy array"):
        parse_python(pickle.dumps({b"data": Evil(), b"labels": []}))
    assert not (tmp_path / "evil").exists()


def test_a_truncated_batch_is_refused_by_name(source: CIFAR10, tmp_path: Path) -> None:
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    expected = (
        r"data_batch_2.bin is truncated \(6145 bytes; expected 6146\): delete it and run `fedvote data get cifar10"
    )
    with pytest.raises(DataError, match=expected):
        source.load(tmp_path)


def test_a_missing_batch_is_named(source: CIFAR10, tmp_path: Path) -> None:
    remove(tmp_path / "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    with pytest.raises(DataError, match=r"or put test_batch.bin in .*cifar-10-batches-bin yourself; "):
        source.load(tmp_path)


def archive_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def published(source: CIFAR10, tmp_path: Path) -> dict[str, bytes]:
    """The members of the archive; the data folder is empty."""
    members = {file.path: (tmp_path / file.path).read_bytes() for file in source.files}
    remove(tmp_path / "cifar-10-batches-bin")
    remove(tmp_path / "cifar-10-batches-py")
    return members


def test_get_unpacks_exactly_what_is_expected(
    source: CIFAR10, published: dict[str, bytes], tmp_path: Path, publisher: Any
) -> None:
    content = archive_of(
        {"../outside": b"no", "/tmp/absolute": b"no", "cifar-10-batches-bin/extra": b"no", **published}
    )
    source = replace(source, archive=publisher.remote("cifar.tar.gz", content))
    source.get(tmp_path / "data")
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == [
        f"data/{name}" for name in sorted(published)
    ]
    assert len(source.load(tmp_path / "data").train) == 4
    source.get(tmp_path / "data")
    assert len(publisher.asked) == 1


def test_get_repairs_a_damaged_batch_and_leaves_the_others(
    source: CIFAR10, published: dict[str, bytes], tmp_path: Path, publisher: Any
) -> None:
    source = replace(source, archive=publisher.remote("cifar.tar.gz", archive_of(published)))
    source.get(tmp_path)
    good, bad = (tmp_path / file.path for file in source.files[:2])
    os.utime(good, (1, 1))
    bad.write_bytes(b"damaged")
    source.get(tmp_path)
    assert good.stat().st_mtime == 1 and all(status.ok for status in source.check(tmp_path))


def test_an_archive_that_a_user_put_there_is_used_and_kept(
    source: CIFAR10, published: dict[str, bytes], tmp_path: Path, publisher: Any
) -> None:
    content = archive_of(published)
    source = replace(source, archive=publisher.remote("cifar.tar.gz", content))
    (tmp_path / "cifar.tar.gz").write_bytes(content)
    source.get(tmp_path)
    assert publisher.asked == [] and (tmp_path / "cifar.tar.gz").exists() and len(source.load(tmp_path).train) == 4


@pytest.mark.parametrize("link", [False, True], ids=["absent", "a link"])
def test_an_archive_without_a_batch_is_refused(
    source: CIFAR10, published: dict[str, bytes], tmp_path: Path, publisher: Any, link: bool
) -> None:
    name = source.files[1].path
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        first = tarfile.TarInfo(source.files[0].path)
        first.size = len(published[first.name])
        tar.addfile(first, io.BytesIO(published[first.name]))
        if link:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "data_batch_1.bin"
            tar.addfile(info)
    source = replace(source, archive=publisher.remote("cifar.tar.gz", buffer.getvalue()))
    with pytest.raises(DataError, match=r"data_batch_2.bin is truncated \(0 bytes;"):
        source.get(tmp_path)
    assert not (tmp_path / name).exists()


def test_the_published_sizes_are_whole_records() -> None:
    assert {file.nbytes for file in BINARY} == {10_000 * 3073}
    assert [file.path.rpartition("/")[2] + ".bin" for file in PYTHON] == [f.path.rpartition("/")[2] for f in BINARY]
    assert len({file.digest for file in BINARY + PYTHON}) == 12
