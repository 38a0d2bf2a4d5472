"""Inputs as tensors. Tables may be frames of pandas: columns that cannot be used are named."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedvote.errors import DataError, Doubt


def is_frame(values: Any) -> bool:
    """Whether this is a table of pandas, or like one."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def inputs(values: Any, name: str, columns: Sequence[str] | None = None) -> Tensor:
    """Bytes as they are, other numbers as float32. `columns`: the columns of a frame, in this order.

    Bytes with two axes are grey images and get an axis of channels. Sequences and tables keep their shape.
    """
    x = _frame(values, name, columns) if is_frame(values) else as_tensor(values, name)
    if x.ndim < 2 or x.numel() == 0 or x.is_complex():
        raise DataError(f"{name} has shape {tuple(x.shape)} and {x.dtype}, expected (n, ...) real numbers with n > 0.")
    if x.dtype == torch.uint8:
        return x.unsqueeze(1) if x.ndim == 3 else x
    x = x.float()
    _check_finite(x, name, columns)
    return x


def as_tensor(values: Any, name: str) -> Tensor:
    """A copy: later changes to the user's array do not reach the dataset."""
    if isinstance(values, Tensor):
        return values.detach().cpu().clone()
    try:
        array = np.array(values)
    except ValueError as error:
        raise DataError(f"{name} has inputs of different shapes, expected one shape: pad or cut them.") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {array.dtype} values, expected numbers: convert them to an array or a tensor.")
    return torch.from_numpy(array)


def warn_of_constants(x: Tensor, columns: Sequence[str] | None) -> None:
    """Say which columns of a table are the same in all training examples."""
    if x.ndim != 2 or len(x) < 2:
        return
    same = (x == x[0]).all(0).nonzero().flatten().tolist()
    if same:
        warnings.warn(
            f"x_train is constant in {_named(same, columns)}: nothing can be learned from it; leave it out",
            Doubt,
            stacklevel=3,
        )


def _frame(frame: Any, name: str, columns: Sequence[str] | None) -> Tensor:
    if columns is not None and list(frame.columns) != list(columns):
        missing = [str(column) for column in columns if column not in list(frame.columns)]
        if missing or len(frame.columns) != len(columns):
            more = [str(column) for column in frame.columns if column not in list(columns)]
            differs = f"lacks {missing}" if missing else f"also has {more}"
            raise DataError(f"{name} {differs}: give both sets the same columns.")
        frame = frame[list(columns)]
    words = [str(column) for column in frame.columns if np.asarray(frame[column]).dtype.kind not in "biuf"]
    if words:
        raise DataError(
            f"{name} has columns that are not numbers: {', '.join(map(repr, words))}; convert them, as by "
            "pandas.get_dummies, or leave them out."
        )
    return torch.from_numpy(np.stack([np.asarray(frame[column], np.float32) for column in frame.columns], 1))


def _check_finite(x: Tensor, name: str, columns: Sequence[str] | None) -> None:
    bad = ~x.isfinite()
    if not bad.any():
        return
    where = ""
    if x.ndim == 2:
        where = f" in {_named(bad.any(0).nonzero().flatten().tolist(), columns)}"
    rows = int(bad.flatten(1).any(1).sum())
    raise DataError(
        f"{name} holds values that are not finite as float32{where}, {rows} of {len(x)} rows: fill in or remove them."
    )


def _named(columns: Sequence[int], names: Sequence[str] | None) -> str:
    some = [repr(str(names[column])) if names is not None else str(column) for column in columns[:8]]
    return f"column{'s' * (len(columns) > 1)} {', '.join(some)}{', ...' * (len(columns) > 8)}"
