"""FEMNIST from LEAF's JSON: by writer, checked for structure, parsed once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedvote.data import femnist
from fedvote.data.femnist import FEMNIST
from fedvote.errors import DataError

Leaf = dict[str, Any]


def leaf(**users: list[tuple[float, int]]) -> Leaf:
    """A LEAF file of flat images: each is one pixel value and a label."""
    data = {user: {"x": [[v] * 784 for v, _ in rows], "y": [y for _, y in rows]} for user, rows in users.items()}
    return {"users": list(users), "num_samples": [len(rows) for rows in users.values()], "user_data": data}


def store(folder: Path, path: str, content: Leaf) -> Path:
    target = folder / "femnist" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content))
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store(tmp_path, "train/all_data_0.json", leaf(w2=[(1.0, 61), (0.0, 10)], w0=[(0.5, 3)]))
    store(tmp_path, "train/all_data_1.json", leaf(w1=[(0.25, 36), (0.251, 0), (1.0, 1)]))
    store(tmp_path, "test/all_data_0.json", leaf(w1=[(0.0, 2)], w0=[(1.0, 3)]))
    return tmp_path


def test_writers_are_numbered_in_the_order_of_their_names_over_all_files(folder: Path) -> None:
    data = FEMNIST().load(folder)
    assert data.writers is not None and data.writers.tolist() == [0, 1, 1, 1, 2, 2]
    assert data.train.y.tolist() == [3, 36, 0, 1, 61, 10] and data.test.y.tolist() == [3, 2]
    assert data.train.x[:, 0, 14, 14].tolist() == [128, 64, 64, 255, 255, 0]
    assert data.shape == (1, 28, 28) and data.train.x.dtype == torch.uint8
    assert [data.classes[label] for label in (3, 10, 36, 61)] == ["3", "A", "a", "z"]


def test_the_second_load_reads_the_cache_and_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = FEMNIST().load(folder)
    monkeypatch.setattr(femnist, "read_writers", None)
    second = FEMNIST().load(folder)
    assert torch.equal(first.train.x, second.train.x) and torch.equal(first.test.y, second.test.y)
    assert first.writers is not None and second.writers is not None and torch.equal(first.writers, second.writers)
    assert sorted(path.name for path in (folder / "femnist").iterdir()) == ["parsed.npz", "test", "train"]


def test_a_rewritten_file_makes_the_cache_stale(folder: Path) -> None:
    FEMNIST().load(folder)
    path = store(folder, "test/all_data_0.json", leaf(w1=[(0.0, 2)], w0=[(1.0, 4)]))  # as many bytes as before
    os.utime(path, (1, 1))
    assert FEMNIST().load(folder).test.y.tolist() == [4, 2]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"text"])
def test_a_damaged_cache_is_made_again(folder: Path, content: bytes) -> None:
    (folder / "femnist" / "parsed.npz").write_bytes(content)
    assert len(FEMNIST().load(folder).train) == 6
    assert (folder / "femnist" / "parsed.npz").stat().st_size > 6 * 784


def test_a_folder_that_cannot_be_written_to_only_costs_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(np, "savez", refused)
    assert len(FEMNIST().load(folder).train) == 6
    assert not (folder / "femnist" / "parsed.npz").exists()


def without(key: str) -> Callable[[Leaf], Leaf]:
    return lambda content: {name: value for name, value in content.items() if name != key}


def changed(key: str, value: Any) -> Callable[[Leaf], Leaf]:
    return lambda content: content | {key: value}


def w3(x: Any, y: Any) -> Callable[[Leaf], Leaf]:
    return changed("user_data", {"w3": {"x": x, "y": y}})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without("num_samples"), "not LEAF's layout"),
        (without("user_data"), "not LEAF's layout"),
        (changed("users", ["w3", "w4"]), "2 users, 1 counts and data of 1 users"),
        (changed("num_samples", [3]), "'w3' has 2 images and 2 labels, expected 3"),
        (w3([[0.0] * 784], [1, 2]), "'w3' has 1 images and 2 labels, expected 2"),
        (w3([[0.0] * 783] * 2, [1, 2]), "do not have 784 numbers each"),
        (w3([[0.0] * 784, [0.0]], [1, 2]), "do not have 784 numbers each"),
        (w3([[1.5] * 784] * 2, [1, 2]), "pixels from 1.5 to 1.5, expected 0 to 1"),
        (w3([[float("nan")] * 784] * 2, [1, 2]), "pixels from nan to nan"),
        (w3([[0.0] * 784] * 2, [1, 62]), "labels that are not integers from 0 to 61"),
        (w3([[0.0] * 784] * 2, [1, 0.5]), "labels that are not integers"),
        (w3([[0.0] * 784] * 2, [1, -1]), "labels that are not integers"),
        (lambda _: [], "not LEAF's layout"),
        (lambda _: leaf(w0=[(0.0, 1)]), "'w0' is in an earlier file too"),
    ],
)
def test_a_file_of_another_structure_is_refused_by_name(
    folder: Path, damage: Callable[[Leaf], Leaf], words: str
) -> None:
    path = store(folder, "train/all_data_9.json", damage(leaf(w3=[(0.0, 1), (1.0, 2)])))
    with pytest.raises(DataError) as caught:
        FEMNIST().load(folder)
    assert str(caught.value).startswith(f"{path}: ") and words in str(caught.value)
    assert not (folder / "femnist" / "parsed.npz").exists()


def test_check_finds_the_truncated_file(folder: Path) -> None:
    path = folder / "femnist" / "train" / "all_data_1.json"
    path.write_bytes(path.read_bytes()[:-10])
    assert [status.state for status in FEMNIST().check(folder)] == ["present", "damaged", "present"]
    with pytest.raises(DataError, match=r"all_data_1.json: it is not whole JSON .*make it again with LEAF"):
        FEMNIST().load(folder)


def test_get_says_how_leaf_makes_it_and_where_it_belongs(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=r"\./preprocess\.sh -s niid --sf .* -k 0 -t sample.*elsewhere/femnist\.$"):
        FEMNIST().get(tmp_path / "elsewhere")
    FEMNIST().get(folder)
