"""Items of a dataset, one after the other, as two stacks: inputs and targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from fedvote import contracts
from fedvote.data.columns import as_tensor
from fedvote.errors import DataError, Doubt, reason

Place = str | int | None
"""Where an item has its input or target: a key of a dict, or the place in a tuple; None: a pair's first or second."""


def stacked(dataset: Any, name: str, inputs: Place = None, target: Place = None) -> tuple[Tensor, Any]:
    """All inputs as one tensor, and the list of all targets."""
    for what, place in (("inputs", inputs), ("target", target)):
        if not isinstance(place, Place):
            raise DataError(
                f"{what} is {place!r}, expected one key of a dict or one place in a tuple: join several in the "
                "dataset's __getitem__, and name the result."
            )
    if isinstance(dataset, DataLoader):
        raise DataError(f"{name} is a DataLoader, which gives batches, expected examples: pass loader.dataset.")
    try:
        count = len(dataset)
        getitem = dataset.__getitem__
        if isinstance(dataset, IterableDataset):
            raise TypeError("it is read from its start alone")
    except (TypeError, AttributeError) as error:
        raise DataError(
            f"{name} has no length ({type(dataset).__name__}: {error}), so it cannot be divided among clients: give a "
            "map-style dataset with __len__ and __getitem__, or list(dataset) if it ends."
        ) from error
    if not count:
        raise DataError(f"{name} is empty: give at least one (x, y) pair.")
    pairs = [_pair(_item(getitem, index, name), name, inputs, target) for index in range(count)]
    if isinstance(dataset, list | tuple):
        _warn_of_batches(*pairs[0], name)
    xs = [input_tensor(x, name) for x, _ in pairs]
    if len(shapes := {tuple(x.shape) for x in xs}) > 1:
        raise DataError(f"{name} has inputs of several shapes, {sorted(shapes)}: resize them to one.")
    return torch.stack(xs), _listed([y for _, y in pairs])


def _item(getitem: Callable[[int], Any], index: int, name: str) -> Any:
    try:
        return getitem(index)
    except Exception as error:  # the user's code may raise anything
        kind = type(error).__name__
        raise DataError(
            f"{name} fails at item {index} ({kind}: {reason(error)}): correct it, or leave it out."
        ) from error


def _pair(item: Any, name: str, inputs: Place, target: Place) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        for what, key in (("inputs", inputs), ("target", target)):
            if key not in item:
                given = f"{what} is not named" if key is None else f"{what}={key!r} is not one of them"
                raise DataError(
                    f"{name} has dicts with the keys {', '.join(map(repr, item))}, and {given}: name both, as in "
                    'inputs="image", target="label".'
                )
        return item[inputs], item[target]
    parts = item if isinstance(item, tuple | list) else ()
    if inputs is None and target is None and len(parts) == 2:
        return parts[0], parts[1]
    places = [place for place in (inputs, target) if isinstance(place, int) and -len(parts) <= place < len(parts)]
    if len(places) < 2:
        found = f"tuples of {len(parts)}" if parts else contracts.kind(item)
        raise DataError(
            f"{name} gives {found}, expected pairs (x, y) or dicts: give a Dataset of these, or the places of x and y "
            "in longer tuples, as in inputs=0, target=2."
        )
    return parts[places[0]], parts[places[1]]


def _warn_of_batches(x: Any, y: Any, name: str) -> None:
    """An item with as many targets as rows is probably a batch of a DataLoader."""
    tensors = isinstance(x, Tensor) and isinstance(y, Tensor)
    if tensors and x.ndim > 1 and y.ndim == 1 and len(x) == len(y):
        warnings.warn(
            f"each item of {name} has an input of shape {tuple(x.shape)} and {len(y)} target{'s' * (len(y) > 1)}, as a "
            "batch has, and counts as one example: for the examples of a DataLoader, pass loader.dataset",
            Doubt,
            stacklevel=4,
        )


def input_tensor(x: Any, name: str) -> Tensor:
    """One input as a tensor; an image of Pillow has its channels first."""
    if hasattr(x, "getbands"):
        pixels = np.array(x)
        return torch.from_numpy(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0).copy())
    return as_tensor(x, name)


def _listed(ys: list[Any]) -> Any:
    """Targets as an array; lists of labels, which may differ in length, stay lists."""
    values = [y.tolist() if isinstance(y, Tensor | np.ndarray | np.generic) else y for y in ys]
    ragged = any(isinstance(y, list | tuple | set) for y in values) and len({np.shape(list(y)) for y in values}) > 1
    named = any(isinstance(y, list | tuple | set) and any(isinstance(each, str) for each in y) for y in values)
    return values if ragged or named else np.array(values)
