"""Inputs as tensors, from arrays or pandas tables. Errors name the columns that cannot be used."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedvote import contracts
from fedvote.errors import DataError, Doubt

# Root mean square of a column or channel, above which inputs are probably unscaled. Digits from 0 to 16 are below it,
# ages in years and pixels from 0 to 255 above it. An MLP for digits with one more column of this size learns little.
LARGEST = 30.0
_NO_TEST = ("", ": without test examples, keep some of the training examples for the test")
SMALLEST = 0.01  # largest number of all: pixels divided by 255 twice are below it, one-hot columns are not


def is_frame(values: Any) -> bool:
    """Whether this is a table of pandas, or like one."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def inputs(values: Any, name: str, columns: Sequence[str] | None = None, unscaled: bool = False) -> Tensor:
    """Bytes as they are, other numbers as float32. Bytes with two axes, grey images, get an axis of channels.

    `columns`: the columns of a frame, in this order. `unscaled`: nothing will scale the inputs, so warn of numbers that
    networks train badly on.
    """
    x = _frame(values, name, columns) if is_frame(values) else as_tensor(values, name)
    if x.ndim < 2 or x.numel() == 0 or x.is_complex():
        fix = "give one number an example as a column, x[:, None]" if x.ndim == 1 else "give at least one example"
        raise DataError(
            f"{name} has shape {tuple(x.shape)} and {x.dtype}, expected (n, ...) real numbers with n > 0: {fix}."
        )
    if x.dtype == torch.uint8:
        return x.unsqueeze(1) if x.ndim == 3 else x
    may_be_tokens = x.ndim == 2 and not x.is_floating_point()
    x = x.float()
    _check_finite(x, name, columns)
    if unscaled and not may_be_tokens:
        _warn_of_scale(x, name, columns)
    return x


def as_tensor(values: Any, name: str) -> Tensor:
    """A copy: later changes to the user's array do not reach the dataset."""
    refuse_unread(values, name)
    if isinstance(values, Tensor):
        return values.detach().cpu().clone()
    try:
        array = np.array(values)
        array = np.array(array.tolist()) if array.dtype.kind == "O" else array  # numbers, if all of them are
    except ValueError as error:
        raise DataError(f"{name} has inputs of different shapes, expected one shape: pad or cut them.") from error
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "O" and not array.ndim:
            found = contracts.kind(array.item())
            raise DataError(f"{name} is {found}, expected an array or a tensor of numbers{_NO_TEST[values is None]}.")
        strange = next((each for each in array.flat if not isinstance(each, Real)), None)
        objects = f"{contracts.kind(strange)} among its values" if array.dtype.kind == "O" else f"{array.dtype} values"
        found = "text" if array.dtype.kind in "US" else objects
        raise DataError(f"{name} holds {found}, expected numbers: encode it as an array or a tensor of these.")
    return torch.from_numpy(array)


def refuse_unread(values: Any, name: str) -> None:
    """Refuse sparse matrices, and generators, whose values are not there yet."""
    sparse = {
        "to_dense()": isinstance(values, Tensor) and values.layout != torch.strided,
        "toarray()": is_scipy(values),
    }
    for fix in (fix for fix, found in sparse.items() if found):
        raise DataError(f"{name} is a sparse {type(values).__name__}, expected a dense one: pass {name}.{fix}.")
    if isinstance(values, Iterator):
        raise DataError(f"{name} is {contracts.kind(values)}, which can be read only once: pass list({name}).")


def is_scipy(values: Any) -> bool:
    return hasattr(values, "toarray") and hasattr(values, "nnz")


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


def _warn_of_scale(x: Tensor, name: str, columns: Sequence[str] | None) -> None:
    """Say which inputs are far from unit scale: too large in a column or channel, or too small in all of them."""
    size_C = torch.linalg.vector_norm(x, dim=[0, *range(2, x.ndim)]) / (x.numel() / x.shape[1]) ** 0.5
    large, most, found = (size_C > LARGEST).nonzero().flatten().tolist(), float(x.abs().max()), ""
    if large:
        where = f" in {_named(large, columns)}" if x.ndim == 2 else ""
        found = f"a root mean square of {float(size_C.max()):,.0f}{where}"
    elif 0 < most < SMALLEST:
        found = f"no number beyond {most:.2g}"
    if found:
        advice = f"pass standardise=True{', or divide pixels by 255' * bool(large)}"
        warnings.warn(f"{name} has {found}, and networks train badly far from 1: {advice}", Doubt, stacklevel=4)


def _frame(frame: Any, name: str, columns: Sequence[str] | None) -> Tensor:
    if columns is not None and list(frame.columns) != list(columns):
        missing = [str(column) for column in columns if column not in list(frame.columns)]
        if missing or len(frame.columns) != len(columns):
            more = [str(column) for column in frame.columns if column not in list(columns)]
            differs = f"lacks {missing}" if missing else f"also has {more}"
            raise DataError(f"{name} {differs}: give both sets the same columns.")
        frame = frame[list(columns)]
    names = [str(column) for column in frame.columns]
    if not names:
        raise DataError(f"{name} has no columns, expected at least one of inputs besides the target.")
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise DataError(f"{name} has {', '.join(map(repr, twice))} more than once: rename these columns, or drop one.")
    series = {name: frame[column] for name, column in zip(names, frame.columns, strict=True)}
    if missing := [column for column, values in series.items() if any(map(is_missing, _objects(values)))]:
        raise DataError(f"{name} has no value in some rows of {', '.join(map(repr, missing))}: fill in or remove them.")
    if words := [column for column, values in series.items() if not _is_number(values)]:
        raise DataError(
            f"{name} has columns that are not numbers: {', '.join(map(repr, words))}; convert them, as by "
            "pandas.get_dummies, or leave them out."
        )
    return torch.from_numpy(np.stack([np.asarray(values, np.float32) for values in series.values()], 1))


def _is_number(values: Any) -> bool:
    """Whether a column holds numbers. Categories are no numbers, even if they are called 1, 2, 3."""
    category = str(getattr(values, "dtype", "")) == "category"
    kind = np.asarray(values).dtype.kind
    return not category and (kind in "biuf" or (kind == "O" and all(isinstance(each, Real) for each in values)))


def _objects(values: Any) -> Sequence[Any]:
    """The values of a column that is no array of numbers."""
    array = np.asarray(values)
    return array.tolist() if array.dtype.kind == "O" else []


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, or the NA of pandas, whose comparison has no truth."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _check_finite(x: Tensor, name: str, columns: Sequence[str] | None) -> None:
    bad = ~x.isfinite()
    if not bad.any():
        return
    where = ""
    if x.ndim == 2:
        where = f" in {_named(bad.any(0).nonzero().flatten().tolist(), columns)}"
    rows = int(bad.flatten(1).any(1).sum())
    raise DataError(
        f"{name} holds values that are not finite as float32{where} ({rows} of {len(x)} rows): fill in or remove them."
    )


def _named(columns: Sequence[int], names: Sequence[str] | None) -> str:
    some = [repr(str(names[column])) if names is not None else str(column) for column in columns[:8]]
    return f"column{'s' * (len(columns) > 1)} {', '.join(some)}{', ...' * (len(columns) > 8)}"
