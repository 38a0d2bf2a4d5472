"""Fashion-MNIST from IDX files: packed or not, whole or refused, fetched file by file."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fedvote.data.fashion_mnist import FILES, REMOTES, FashionMNIST, parse_idx
from fedvote.data.files import File
from fedvote.errors import DataError

# 2 images of 2 x 3 and 1 image, as bytes: magic, sizes, values
PUBLISHED = {
    "train-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(12)]),
    "train-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 2, 9, 4]),
    "t10k-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, *range(250, 256)]),
    "t10k-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]),
}


@pytest.fixture
def source(put: Callable[[str, bytes], File]) -> FashionMNIST:
    return FashionMNIST(files=tuple(put(f"fashion-mnist/{name}", content) for name, content in PUBLISHED.items()))


def test_images_and_labels_are_read_in_order(source: FashionMNIST, tmp_path: Path) -> None:
    data = source.load(tmp_path)
    assert data.train.x.tolist() == [[[[0, 1, 2], [3, 4, 5]]], [[[6, 7, 8], [9, 10, 11]]]]
    assert data.train.x.dtype == torch.uint8 and data.train.y.dtype == torch.int64
    assert data.train.y.tolist() == [9, 4] and data.test.y.tolist() == [7]
    assert data.test.x.tolist() == [[[[250, 251, 252], [253, 254, 255]]]]
    assert data.classes[9] == "ankle boot" and len(data.classes) == 10
    assert data.train.mean == (0.2860,) and data.train.std == (0.3530,)


def test_packed_files_give_the_same_dataset(source: FashionMNIST, tmp_path: Path) -> None:
    plain = source.load(tmp_path)
    for path in sorted((tmp_path / "fashion-mnist").iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = source.load(tmp_path)
    assert torch.equal(plain.train.x, packed.train.x) and torch.equal(plain.test.y, packed.test.y)


def test_an_altered_file_is_refused_by_name(source: FashionMNIST, tmp_path: Path) -> None:
    path = tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1] + b"\x08")
    with pytest.raises(
        DataError, match=r"t10k-labels-idx1-ubyte is wrong digest .*: delete it and run `fedvote data get"
    ):
        source.load(tmp_path)
    assert [status.state for status in source.check(tmp_path)] == ["present"] * 3 + ["wrong digest"]


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x0d\x01\x00\x00\x00\x00", bytes([0, 0, 8, 1, 0, 0, 0, 3, 1])])
def test_what_is_not_idx_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="a is not an IDX file"):
        parse_idx(content, "a")


def test_get_fetches_only_what_is_missing_or_damaged(source: FashionMNIST, tmp_path: Path, publisher: Any) -> None:
    remotes = tuple(publisher.remote(f"{name}.gz", gzip.compress(content)) for name, content in PUBLISHED.items())
    source = replace(source, remotes=remotes)
    whole = source.load(tmp_path)
    (tmp_path / "fashion-mnist" / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    (tmp_path / "fashion-mnist" / "t10k-images-idx3-ubyte").unlink()
    seen: list[tuple[int, int]] = []
    source.get(tmp_path, lambda *told: seen.append(told))
    assert [path for path, _ in publisher.asked] == ["/train-labels-idx1-ubyte.gz", "/t10k-images-idx3-ubyte.gz"]
    total = remotes[1].nbytes + remotes[2].nbytes
    assert seen == [(remotes[1].nbytes, total), (total, total)]
    assert torch.equal(source.load(tmp_path).test.x, whole.test.x)


def test_every_published_file_has_its_publisher() -> None:
    assert [file.path.rpartition("/")[2] + ".gz" for file in FILES] == [remote.name for remote in REMOTES]
