"""Targets of a task as tensors: classes, numbers, or several labels each. Names of classes are kept."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedvote.core import TASKS, Task
from fedvote.data.columns import is_missing, refuse_unread
from fedvote.errors import ConfigError, DataError, Doubt

Names = tuple[str, ...]
MANY = 0.2  # classes for each example: with more, whole numbers are probably no classes
FAR = 10.0  # targets of this size are far from a network's first outputs


def targets(train: Any, test: Any, task: Task, classes: Sequence[str] | None) -> tuple[Tensor, Tensor, Names]:
    """The targets of both sets, and the names of the classes; in regression, of the targets."""
    if task not in TASKS:
        raise ConfigError(f"task is {task!r}, expected one of: {', '.join(TASKS)}")
    if isinstance(classes, str | Mapping | Set) or not isinstance(classes, Iterable | None):
        raise DataError(
            f"`classes` is {classes!r}, expected the names of all classes in order: give a list of strings."
        )
    if twice := [name for name, count in Counter(map(str, () if classes is None else classes)).items() if count > 1]:
        raise DataError(f"`classes` has {_some(twice)} more than once, expected names that differ: rename them.")
    if task == "regression":
        return _regression(train, test, classes)
    if task == "multi-label":
        return _multi_label(train, test, classes)
    y, y2, names = _classification(as_array(train, "y_train"), as_array(test, "y_test"), classes)
    if len(y) > 1 and bool((y == y[0]).all()):
        warnings.warn(
            f"all {len(y)} training examples are of the class {names[int(y[0])]!r}: there is nothing to learn",
            Doubt,
            stacklevel=4,
        )
    return y, y2, names


def as_array(values: Any, name: str) -> np.ndarray:
    """An array of numbers, or of strings; missing values are refused by their rows."""
    refuse_unread(values, name)
    if isinstance(values, Tensor):
        return np.asarray(values.detach().cpu().numpy())
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{name} has rows of different lengths, expected one number or name each: cut them.") from error
    if array.dtype.kind == "O":
        missing = [row for row, value in enumerate(array.flat) if is_missing(value)]
        if missing:
            raise DataError(f"{name} has no value in {_rows(missing)}: fill them in, or leave these examples out.")
        array = np.array(array.tolist())  # strings, if all of them are
    if array.dtype.kind not in "biufU":
        fix = f"pass {name}.astype(str)" if array.dtype.kind in "SM" else "convert them"
        raise DataError(f"{name} holds {array.dtype} values, expected numbers or strings: {fix}.")
    return array


def _classification(y: np.ndarray, y2: np.ndarray, classes: Sequence[str] | None) -> tuple[Tensor, Tensor, Names]:
    y, y2 = (array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array for array in (y, y2))
    for array, name in ((y, "y_train"), (y2, "y_test")):
        if array.ndim == 1 and array.dtype.kind == "f" and (rows := np.flatnonzero(np.isnan(array)).tolist()):
            raise DataError(f"{name} has no value in {_rows(rows)}: fill them in, or leave these examples out.")
        if array.ndim != 1 or array.dtype.kind == "f":
            raise DataError(
                f"{name} has shape {array.shape} and {array.dtype}, expected (n,) integers or strings: one class for "
                'each example; for numbers pass task="regression", for several labels task="multi-label", for one-hot '
                "rows y.argmax(1), for classes that are stored as floats y.astype(int), for masks "
                'task="multi-label" and y.reshape(len(y), -1).'
            )
    if classes is None and y.dtype.kind == y2.dtype.kind == "b":
        y, y2 = y.astype(str), y2.astype(str)
    if "U" in (y.dtype.kind, y2.dtype.kind):
        if classes is None:
            return _named(y, y2, np.unique(y.astype(str)).tolist(), "y_train")
        return _named(y, y2, list(map(str, classes)), "`classes`")
    if np.iinfo(np.int64).max < max((int(array.max()) for array in (y, y2) if array.size), default=0):
        y, y2 = y.astype(str), y2.astype(str)
        return _named(y, y2, np.unique(y).tolist(), "y_train")
    present = np.unique(np.concatenate([y, y2]).astype(np.int64)).tolist()
    known = np.unique(y.astype(np.int64))
    if classes is not None:
        if present and not 0 <= present[0] <= present[-1] < len(classes):
            wrong = present[0] if present[0] < 0 else present[-1]
            raise DataError(f"a label is {wrong}, expected 0 to {len(classes) - 1} for {len(classes)} classes.")
        return _whole(y), _whole(y2), tuple(map(str, classes))
    if present == list(range(len(present))) == known.tolist():
        return _whole(y), _whole(y2), tuple(map(str, present))
    if len(known) > MANY * len(y) and len(known) > 10:
        warnings.warn(
            f"y_train has {len(known)} different numbers in {len(y)} examples, and each counts as a class: for "
            'numbers to predict, pass task="regression"',
            Doubt,
            stacklevel=5,
        )
    text, text2 = (each.astype(np.int64).astype(str) for each in (y, y2))
    return _named(text, text2, list(map(str, known.tolist())), "y_train")


def _named(y: np.ndarray, y2: np.ndarray, known: Sequence[str], source: str) -> tuple[Tensor, Tensor, Names]:
    """Labels as places in the list of known names, which `source` has."""
    place, found = {name: at for at, name in enumerate(known)}, []
    for array, name in ((y, "y_train"), (y2, "y_test")):
        for row, label in enumerate(array.astype(str).tolist()):
            if label not in place:
                raise DataError(
                    f"{name} has the label {label!r} in row {row}, which {source} lacks (it has {_some(known)}): "
                    "correct the label, leave these examples out, or name all classes by `classes`."
                )
        found.append(torch.tensor([place[label] for label in array.astype(str).tolist()], dtype=torch.int64))
    return found[0], found[1], tuple(known)


def _regression(train: Any, test: Any, names: Sequence[str] | None) -> tuple[Tensor, Tensor, Names]:
    y, y2 = _columns_of_numbers(train, "y_train"), _columns_of_numbers(test, "y_test")
    if y.shape[1:] != y2.shape[1:]:
        raise DataError(f"y_train has {_count(y, 'target')}, y_test has {y2.shape[1]}: give both the same.")
    mean, std = float(y.mean()), float(y.std(correction=0))
    if max(abs(mean), std) > FAR:
        warnings.warn(
            f"y_train has mean {mean:.3g} and standard deviation {std:.3g}, while outputs of a new network are near 0 "
            "and of size 1: train on (y - mean) / std, with both measured on y_train",
            Doubt,
            stacklevel=4,
        )
    return y, y2, _names(names, y.shape[1], "target")


def _multi_label(train: Any, test: Any, classes: Sequence[str] | None) -> tuple[Tensor, Tensor, Names]:
    for values, name in ((train, "y_train"), (test, "y_test")):
        if not isinstance(values, Tensor) and any(isinstance(value, str) for value in values):
            raise DataError(
                f'{name} has a string for each example, expected a list of the names of its labels, such as ["a", "b"] '
                "or [], or a row of 0 and 1: split the strings."
            )
    known = None
    if _lists_of_labels(train):
        known = (
            [*map(str, classes)] if classes is not None else _sorted({label for labels in train for label in labels})
        )
        train, test = (_indicators(y, known, name) for y, name in ((train, "y_train"), (test, "y_test")))
    y, y2 = _columns_of_numbers(train, "y_train"), _columns_of_numbers(test, "y_test")
    for values, name in ((y, "y_train"), (y2, "y_test")):
        if not ((values == 0) | (values == 1)).all():
            raise DataError(f"{name} holds other numbers than 0 and 1, expected (n, labels) of these: convert them.")
    if y.shape[1:] != y2.shape[1:]:
        raise DataError(f"y_train has {_count(y, 'label')}, y_test has {y2.shape[1]}: give both the same.")
    return y, y2, _names(known or classes, y.shape[1], "label")


def _lists_of_labels(values: Any) -> bool:
    """Whether each example has a list of the names of its labels."""
    if isinstance(values, np.ndarray | Tensor) or not isinstance(values, Iterable):
        return False
    rows = list(values)
    if not all(isinstance(row, list | tuple | set | frozenset) for row in rows):
        return False
    return any(isinstance(label, str) for row in rows for label in row) or len({len(row) for row in rows}) > 1


def _sorted(labels: set[Any]) -> list[str]:
    """Names in their order; numbers by their size."""
    return sorted(map(str, labels)) if any(isinstance(each, str) for each in labels) else list(map(str, sorted(labels)))


def _indicators(rows: Any, known: Sequence[str], name: str) -> np.ndarray:
    found = np.zeros((len(rows), len(known)), np.float32)
    place = {label: at for at, label in enumerate(known)}
    for row, labels in enumerate(rows):
        for label in labels:
            if str(label) not in place:
                raise DataError(
                    f"{name} has the label {str(label)!r} in row {row}, which is not known (known: {_some(known)}): "
                    "correct it, or name all labels by `classes`."
                )
            found[row, place[str(label)]] = 1
    return found


def _columns_of_numbers(values: Any, name: str) -> Tensor:
    """(n,) or (n, targets) as (n, targets) float32, all finite."""
    array = as_array(values, name)
    if array.dtype.kind == "U" or array.ndim not in (1, 2):
        fix = "convert them" if array.dtype.kind == "U" else "flatten each example's, y.reshape(len(y), -1)"
        raise DataError(
            f"{name} has shape {array.shape} and {array.dtype}, expected (n,) or (n, targets) numbers: {fix}."
        )
    y = torch.from_numpy(np.array(array, np.float32)).reshape(len(array), -1)
    if not y.isfinite().all():
        rows = (~y.isfinite()).any(1).nonzero().flatten().tolist()
        raise DataError(f"{name} is not finite in {_rows(rows)}: fill them in, or leave these examples out.")
    return y


def _names(given: Sequence[str] | None, count: int, word: str) -> Names:
    if given is not None and len(given) != count:
        raise DataError(f"`classes` has {len(given)} names, expected one for each {word}, {count} in all.")
    if given is not None:
        return tuple(map(str, given))
    return (word,) if count == 1 else tuple(f"{word} {index}" for index in range(count))


def _count(y: Tensor, word: str) -> str:
    return f"{y.shape[1]} {word}{'s' * (y.shape[1] != 1)}"


def _whole(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def _rows(rows: Sequence[int]) -> str:
    some = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    return f"row {some}" if len(rows) == 1 else f"{len(rows)} rows ({some})"
