"""Datasets from a user's own arrays, tensors, tables or torch datasets, checked once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import Dataset, Examples, Task
from fedvote.data.columns import inputs, is_frame, warn_of_constants
from fedvote.data.items import stacked
from fedvote.data.targets import as_array, targets
from fedvote.errors import DataError, Doubt

ArrayLike = np.ndarray | Tensor | Sequence[Any]


def from_arrays(
    x_train: ArrayLike,
    y_train: ArrayLike,
    x_test: ArrayLike,
    y_test: ArrayLike,
    *,
    task: Task = "classification",
    classes: Sequence[str] | None = None,
    mean: float | Sequence[float] = (),
    std: float | Sequence[float] = (),
    standardise: bool = False,
    writers: ArrayLike | None = None,
    name: str = "custom",
) -> Dataset:
    """A dataset from arrays, tensors or frames. uint8 inputs stay uint8 (training uses x / 255), others become float32.

    uint8 inputs with two axes, grey images, get a channel axis: (h, w) becomes (1, h, w). Other shapes stay.
    task: classification, regression or multi-label
    classes: names of the classes, labels or targets; not given: the labels themselves
    mean, std: of each channel or column, or one number for all; inputs are scaled by (x - mean) / std
    standardise: measure mean and std on the training inputs
    """
    _check_order(x_train, y_train, x_test, y_test)
    columns = list(x_train.columns) if is_frame(x_train) else None  # type: ignore[union-attr]
    unscaled = not standardise and not np.size(mean)
    x, x2 = inputs(x_train, "x_train", columns, unscaled), inputs(x_test, "x_test", columns)
    y, y2, names = targets(y_train, y_test, task, classes)
    _same_length(x, y, "x_train", "y_train")
    _same_length(x2, y2, "x_test", "y_test")
    if x.shape[1:] != x2.shape[1:]:
        raise DataError(f"x_train has inputs of {_size(x)}, x_test of {_size(x2)}: give both the same shape.")
    if x.dtype != x2.dtype:
        raise DataError(
            f"x_train is {x.dtype}, x_test {x2.dtype}: convert both to bytes, which are divided by 255, or neither."
        )
    warn_of_constants(x, columns)
    means, deviations = _numbers(mean, "mean"), _numbers(std, "std")
    if standardise:
        means, deviations = _measured(x, means, deviations)
    center, scale = _scaling(means, deviations, x.shape[1])
    if x.dtype == torch.uint8 and max(center, default=0) > 1:
        warnings.warn(
            f"mean is {max(center):g}, but bytes are divided by 255 first: give mean and std of x / 255",
            Doubt,
            stacklevel=2,
        )
    writer = None if writers is None else _writers(as_array(writers, "writers"))
    if writer is not None:
        _same_length(x, writer, "x_train", "writers")
    train, test = Examples(x, y, center, scale), Examples(x2, y2, center, scale)
    return Dataset(name, train, test, names, writer, task, tuple(map(str, columns or ())))


def from_pandas(train: Any, test: Any, target: Any, **options: Any) -> Dataset:
    """A dataset from two tables of pandas: the column `target` (or a list of them), and all other columns as inputs.

    Inputs are standardised by column, unless `standardise=False`. Other options: see `from_arrays`.
    """
    parts, columns = [], list(getattr(train, "columns", ()))
    if type(target).__hash__ is None and not isinstance(target, list):
        raise DataError(f"target is {contracts.kind(target)}, expected the name of a column, or a list of names.")
    one = not isinstance(target, list | tuple) or target in columns
    chosen = [target] if one else list(target)
    for frame, name in ((train, "the training table"), (test, "the test table")):
        if not is_frame(frame):
            raise DataError(f"{name} is {contracts.kind(frame)}, expected a pandas.DataFrame.")
        if missing := [column for column in chosen if column not in list(frame.columns)]:
            has = ", ".join(map(str, frame.columns))
            raise DataError(f"{name} has no column {', '.join(map(repr, missing))}; it has {has}.")
        parts += [frame[[column for column in frame.columns if column not in chosen]]]
        parts += [frame[target] if one else frame[chosen]]
        if one and is_frame(parts[-1]):
            raise DataError(f"{name} has the column {target!r} more than once: rename one of them, or drop it.")
    if options.get("task", "classification") != "classification":
        options.setdefault("classes", chosen)
    return from_arrays(*parts, **({"standardise": True} | options))


def from_torch(
    train_dataset: Any,
    test_dataset: Any,
    *,
    inputs: str | int | None = None,
    target: str | int | None = None,
    **options: Any,
) -> Dataset:
    """A dataset from two datasets of torch, read once. Items are pairs (x, y), or dicts.

    inputs, target: the keys of x and y in dicts, or their places in longer tuples. Other options: see `from_arrays`.
    """
    x_train, y_train = stacked(train_dataset, "train_dataset", inputs, target)
    x_test, y_test = stacked(test_dataset, "test_dataset", inputs, target)
    return from_arrays(x_train, y_train, x_test, y_test, **options)


def _check_order(*given: Any) -> None:
    """Refuse the order in which scikit-learn's train_test_split returns its parts, if their lengths show it."""
    x_train, y_train, x_test, y_test = map(_rows, given)
    if None not in (x_train, y_train) and x_train == x_test != y_train == y_test:
        raise DataError(
            f"the four arguments have {x_train}, {y_train}, {x_test} and {y_test} rows, expected x_train, y_train, "
            "x_test, y_test: the order is not that of train_test_split; name the arguments."
        )


def _rows(values: Any) -> int | None:
    """How many there are, if that can be known without reading them."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(values) if isinstance(values, Sequence) else None


def _writers(names: np.ndarray) -> Tensor:
    """Whole numbers as they are; other names by their order."""
    numbers = names if names.dtype.kind in "iu" else np.unique(names, return_inverse=True)[1]
    return torch.from_numpy(numbers.astype(np.int64))


def _numbers(given: float | Sequence[float], name: str) -> list[float]:
    try:
        return [float(value) for value in np.ravel(given)]
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is {given!r}, expected one number, or one for each channel or column.") from error


def _measured(x: Tensor, mean: Sequence[float], std: Sequence[float]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel or column; those that are constant are not divided."""
    if len(mean) or len(std):
        raise DataError("standardise measures mean and std, but they are given as well: pass either, not both.")
    values = (x.float() / 255 if x.dtype == torch.uint8 else x).double().transpose(0, 1).flatten(1)
    deviation = values.std(1, correction=0)
    return values.mean(1).tolist(), torch.where(deviation > 0, deviation, 1.0).tolist()


def _scaling(mean: Sequence[float], std: Sequence[float], channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    center, scale = tuple(mean), tuple(std)
    usable = all(map(math.isfinite, center)) and all(0 < s < math.inf for s in scale)
    if len(center) != len(scale) or len(center) not in (0, 1, channels) or not usable:
        given = f"mean {center} and std {scale}"
        raise DataError(f"{given} do not fit: give both with {channels} finite numbers and std > 0, or neither.")
    return center, scale


def _same_length(x: Tensor, y: Tensor, x_name: str, y_name: str) -> None:
    if len(x) != len(y):
        raise DataError(f"{x_name} has {len(x)} rows, {y_name} has {len(y)}: give one for each example.")


def _size(x: Tensor) -> str:
    return " x ".join(map(str, x.shape[1:]))
