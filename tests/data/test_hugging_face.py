"""Datasets of Hugging Face: their numbers and classes are used, and what is not clear is refused."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from fedvote.data import from_hugging_face, load
from fedvote.errors import DataError, FedVoteError
from fedvote.runs.config import parse
from fedvote.runs.experiment import configured_data


class ClassLabel:
    dtype, names = "int64", ["ant", "bee"]


class Value:
    def __init__(self, dtype: str):
        self.dtype = dtype


class Split(dict[str, Any]):
    def __init__(self, features: dict[str, Any], **columns: Any):
        super().__init__(columns)
        self.features = features


FEATURES = {"a": Value("float32"), "b": Value("int32"), "label": ClassLabel(), "note": Value("string")}
SPLIT = Split(FEATURES, a=[1.0, 2.0], b=[3, 4], label=[1, 0], note=["", ""])


def test_a_hugging_face_table_uses_its_numbers_and_its_classes() -> None:
    data = from_hugging_face({"train": SPLIT, "validation": SPLIT})
    assert data.classes == ("ant", "bee") and data.train.y.tolist() == [1, 0]
    assert data.train.x.tolist() == [[1, 3], [2, 4]] and data.task == "classification"


@pytest.mark.parametrize(
    ("train", "options", "words"),
    [
        ({"train": SPLIT}, {}, "the dataset has the splits train, expected train and test"),
        (iter([]), {}, "is one list_iterator, expected train and test"),
        ({"train": SPLIT, "test": object()}, {}, "test split of the dataset is an object without length"),
        (
            {"train": Split(FEATURES), "test": SPLIT},
            {},
            "the training split of the dataset is empty: give at least one",
        ),
        ({"train": SPLIT, "test": SPLIT}, {"target": "kind"}, "has no column 'kind'; it has a, b, label, note"),
        ({"train": SPLIT, "test": SPLIT}, {"inputs": "pixels"}, "not clear which are inputs: name them"),
    ],
)
def test_hugging_face_datasets_that_are_not_clear_are_refused(train: Any, options: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_hugging_face(train, **options)


def test_hf_names_reach_the_library_and_its_absence_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    fake = types.ModuleType("datasets")

    def load_dataset(*name: Any) -> Any:
        asked.append(name)
        return {"train": SPLIT, "test": SPLIT}

    fake.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", fake)
    config = parse("[data]\nname = 'hf:insects:small'\ninputs = ['b']", "here")
    assert configured_data(config.data).shape == (1,) and asked == [("insects", "small")]
    assert load("hf:insects").shape == (2,) and asked[1] == ("insects", None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match="hf: needs the library datasets, which is not installed"):
        load("hf:insects")


def test_columns_are_of_hugging_face_alone_and_a_task_is_checked() -> None:
    with pytest.raises(FedVoteError, match=r"data.inputs and data.target name columns of hf:NAME"):
        parse("[data]\ntarget = 'label'", "here")
    with pytest.raises(DataError, match=r"data.task is regression, but the task of digits is classification"):
        configured_data(parse("[data]\ntask = 'regression'", "here").data)


def test_a_hugging_face_dataset_is_read() -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `hf` is not installed")
    split = datasets.Dataset.from_dict({"a": [1.0, 2.0], "label": ["x", "y"]})
    assert from_hugging_face(split, split).classes == ("x", "y")
    with pytest.raises(DataError, match="IterableDataset without length"):
        from_hugging_face(split.to_iterable_dataset(), split)


def test_a_folder_of_hugging_face_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saved").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse("data = 'hf:saved'", "here").data.name == f"hf:{tmp_path / 'saved'}"
    assert parse("data = 'hf:not/there'", "here").data.name == "hf:not/there"
