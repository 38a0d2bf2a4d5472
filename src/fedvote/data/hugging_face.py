"""Datasets of the library `datasets`: objects in programs, or `hf:NAME` in configurations.

hf:NAME             of the hub, or a folder of files
hf:NAME:SUBSET      one of its configurations
hf:FOLDER           as `save_to_disk` writes it
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedvote import contracts
from fedvote.core import Dataset, Task
from fedvote.data.arrays import from_arrays
from fedvote.data.items import input_tensor
from fedvote.errors import DataError, reason

PREFIX = "hf:"
TESTS = ("test", "validation")  # splits to evaluate on, the first that is there
TARGETS = ("label", "labels", "target", "y")  # names of a column of targets, if no column has classes
NUMBERS = ("int", "uint", "float", "bool", "double")


def load_hugging_face(name: str, **columns: Any) -> Dataset:
    """The dataset `hf:NAME`. Options: see `from_hugging_face`."""
    path, _, subset = name.removeprefix(PREFIX).partition(":")
    library = _library()
    try:
        saved = (Path(path) / "dataset_dict.json").is_file()
        splits = library.load_from_disk(path) if saved else library.load_dataset(path, subset or None)
    except Exception as error:
        raise DataError(
            f"{name} cannot be loaded ({reason(error)}): give a dataset's name, hf:NAME or hf:NAME:SUBSET, or a folder."
        ) from error
    return from_hugging_face(splits, name=name, **columns)


def from_hugging_face(
    train: Any,
    test: Any = None,
    *,
    inputs: str | Sequence[str] | None = None,
    target: str | None = None,
    task: Task | None = None,
    **options: Any,
) -> Dataset:
    """A dataset from two datasets of Hugging Face, or from a `DatasetDict` with the splits train and test.

    inputs: the column of inputs, or several columns of numbers; not given: the image, or all columns of numbers
    target: the column of targets; not given: the one with classes, or the one called label
    task: not given: classification for classes, whole numbers and strings, regression for floats, multi-label for lists
    Other options: see `from_arrays`.
    """
    name = options.get("name", "the dataset")
    if test is None:
        train, test = _splits(train, name)
    for split, which in ((train, "training"), (test, "test")):
        if not hasattr(split, "features") or not hasattr(split, "__len__"):
            raise DataError(
                f"the {which} split of {name} is {contracts.kind(split)} without length or columns, expected a "
                "datasets.Dataset: load it with streaming=False."
            )
        if not len(split):
            raise DataError(f"the {which} split of {name} is empty: give at least one example.")
    features: Mapping[str, Any] = train.features
    target = _target(features, target, name)
    chosen = _inputs(features, inputs, target, name)
    task = task or _task(features[target])
    options.setdefault("classes", _classes(features[target]))
    x, x2 = _stack(train, chosen, name), _stack(test, chosen, name)
    y, y2 = (_targets(split, target, task, options["classes"]) for split in (train, test))
    return from_arrays(x, y, x2, y2, task=task, **options)


def _library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise DataError(
            "hf: needs the library datasets, which is not installed: run `pip install '.[hf]'` in a clone."
        ) from error


def _splits(found: Any, name: str) -> tuple[Any, Any]:
    names = list(found) if isinstance(found, Mapping) else []
    test = next((split for split in TESTS if split in names), None)
    if "train" not in names or test is None:
        has = f"has the splits {', '.join(map(str, names))}" if names else f"is one {type(found).__name__}"
        raise DataError(
            f"{name} {has}, expected train and test: divide it with train_test_split, or give both datasets."
        )
    return found["train"], found[test]


def _kind(feature: Any) -> str:
    return type(feature).__name__


def _target(features: Mapping[str, Any], given: str | None, name: str) -> str:
    labelled = [column for column, feature in features.items() if _kind(feature) == "ClassLabel"]
    usual = [column for column in TARGETS if column in features]
    found = given or (labelled[0] if len(labelled) == 1 else usual[0] if usual and not labelled else None)
    if found not in features:
        asked = f"no column {given!r}" if given else "no single column of classes"
        raise DataError(f"{name} has {asked}; it has {', '.join(features)}: name one, target=COLUMN or data.target.")
    return str(found)


def _inputs(features: Mapping[str, Any], given: str | Sequence[str] | None, target: str, name: str) -> list[str]:
    if given is not None:
        columns = [given] if isinstance(given, str) else list(given)
    else:
        images = [column for column, feature in features.items() if _kind(feature) == "Image"]
        numbers = [
            column
            for column, feature in features.items()
            if column != target and str(getattr(feature, "dtype", "")).startswith(NUMBERS)
        ]
        rest = [column for column in features if column != target]
        columns = images if len(images) == 1 else numbers if numbers and not images else rest if len(rest) == 1 else []
    if not columns or any(column not in features for column in columns):
        raise DataError(
            f"{name} has the columns {', '.join(features)}, and it is not clear which are inputs: name them, "
            "inputs=COLUMN or data.inputs."
        )
    return columns


def _task(feature: Any) -> Task:
    if _kind(feature) in ("Sequence", "List", "LargeList"):
        return "multi-label"
    return "regression" if str(getattr(feature, "dtype", "")).startswith(("float", "double")) else "classification"


def _classes(feature: Any) -> list[str] | None:
    names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)
    return list(names) if names else None


def _stack(split: Any, columns: Sequence[str], name: str) -> Any:
    if len(columns) > 1:
        return np.stack([np.asarray(list(split[column]), np.float32) for column in columns], 1)
    values = [input_tensor(value, f"column {columns[0]!r} of {name}") for value in split[columns[0]]]
    if len(shapes := {tuple(value.shape) for value in values}) > 1:
        raise DataError(
            f"column {columns[0]!r} of {name} has several shapes, {sorted(shapes)[:4]}: resize them to one."
        )
    stack = np.stack([value.numpy() for value in values])
    return stack[:, None] if stack.ndim == 1 else stack


def _targets(split: Any, column: str, task: Task, classes: Sequence[str] | None) -> Any:
    values = list(split[column])
    if task == "multi-label" and classes is not None:  # lists of the numbers of labels
        return [[classes[label] if isinstance(label, int) else label for label in labels] for labels in values]
    return values if task == "multi-label" else np.array(values)
