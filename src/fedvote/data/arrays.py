"""Datasets from a user's own arrays, tensors or torch datasets, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedvote.core import Dataset, Examples
from fedvote.errors import DataError

ArrayLike = np.ndarray | Tensor | Sequence[Any]


def from_arrays(
    x_train: ArrayLike,
    y_train: ArrayLike,
    x_test: ArrayLike,
    y_test: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    writers: ArrayLike | None = None,
    name: str = "custom",
) -> Dataset:
    """A dataset from arrays or tensors. uint8 inputs stay uint8 (training uses x / 255), others become float32.

    Inputs with two axes, such as grey images, get a channel axis: (h, w) becomes (1, h, w).
    """
    x, x2 = _inputs(x_train, "x_train"), _inputs(x_test, "x_test")
    y, y2 = _labels(y_train, "y_train"), _labels(y_test, "y_test")
    _same_length(x, y, "x_train", "y_train")
    _same_length(x2, y2, "x_test", "y_test")
    if x.shape[1:] != x2.shape[1:]:
        raise DataError(f"x_train has inputs of {_size(x)}, x_test of {_size(x2)}: give both the same shape.")
    names = _classes(y, y2, classes)
    center, scale = _scaling(mean, std, x.shape[1])
    writer = None if writers is None else _labels(writers, "writers")
    if writer is not None:
        _same_length(x, writer, "x_train", "writers")
    return Dataset(name, Examples(x, y, center, scale), Examples(x2, y2, center, scale), names, writer)


def from_torch(train_dataset: Any, test_dataset: Any, **options: Any) -> Dataset:
    """A dataset from two torch `Dataset`s of (x, y) pairs, read once. Options: see `from_arrays`."""
    x_train, y_train = _stack(train_dataset, "train_dataset")
    x_test, y_test = _stack(test_dataset, "test_dataset")
    return from_arrays(x_train, y_train, x_test, y_test, **options)


def _stack(dataset: Any, name: str) -> tuple[Tensor, Tensor]:
    try:
        pairs = [dataset[i] for i in range(len(dataset))]
        xs = [_tensor(x, name) for x, _ in pairs]
        ys = [_tensor(y, name) for _, y in pairs]
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} has no length or does not give (x, y) pairs ({error}): give a Dataset.") from error
    if not pairs:
        raise DataError(f"{name} is empty: give at least one (x, y) pair.")
    if len(shapes := {tuple(x.shape) for x in xs}) > 1:
        raise DataError(f"{name} has inputs of several shapes, {sorted(shapes)}: resize them to one.")
    return torch.stack(xs), torch.stack(ys)


def _tensor(values: Any, name: str) -> Tensor:
    """A copy: later changes to the user's array do not reach the dataset."""
    if isinstance(values, Tensor):
        return values.detach().cpu().clone()
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {array.dtype} values, expected numbers: convert them to an array or a tensor.")
    return torch.from_numpy(array)


def _inputs(values: Any, name: str) -> Tensor:
    x = _tensor(values, name)
    if x.ndim < 2 or x.numel() == 0 or x.is_complex():
        raise DataError(f"{name} has shape {tuple(x.shape)} and {x.dtype}, expected (n, ...) real numbers with n > 0.")
    if x.dtype != torch.uint8:
        x = x.float()
        if not x.isfinite().all():
            raise DataError(f"{name} holds values that are not finite as float32: remove or replace them.")
    return x.unsqueeze(1) if x.ndim == 3 else x


def _labels(values: Any, name: str) -> Tensor:
    y = _tensor(values, name)
    if y.ndim != 1 or y.is_floating_point() or y.is_complex():
        raise DataError(f"{name} has shape {tuple(y.shape)} and {y.dtype}, expected (n,) integers.")
    y = y.long()
    if len(y) and y.min() < 0:
        raise DataError(f"{name} holds {int(y.min())}, expected integers from 0 on.")
    return y


def _classes(y: Tensor, y2: Tensor, classes: Sequence[str] | None) -> tuple[str, ...]:
    present = np.unique(np.concatenate([y.numpy(), y2.numpy()])).tolist()
    if classes is None:
        if present != list(range(len(present))):
            gap = f"{len(present)} labels from {present[0]} to {present[-1]}"
            raise DataError(f"there are {gap}, expected 0 to {len(present) - 1}: renumber them, or pass `classes`.")
        return tuple(str(label) for label in present)
    if present[-1] >= len(classes):
        raise DataError(f"a label is {present[-1]}, expected 0 to {len(classes) - 1} for {len(classes)} classes.")
    return tuple(classes)


def _scaling(mean: Sequence[float], std: Sequence[float], channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    center, scale = tuple(map(float, mean)), tuple(map(float, std))
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
