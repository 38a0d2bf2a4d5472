"""Checks of the values that methods, rules, attacks and partitioners return: a user's own part may be wrong."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from fedvote.core import Examples, Message, Weights
from fedvote.errors import ConfigError, article
from fedvote.registry import cached


def refuse(part: object, function: str, given: Any, expected: str) -> NoReturn:
    raise ConfigError(f"{type(part).__name__}.{function} gives {given}, expected {expected}")


def kind(value: Any) -> str:
    """What a wrong value is, for a sentence about it."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, Tensor):
        return form(value)
    return "nothing" if value is None else article(type(value).__name__)


@cached
def signatures(part: type, base: type) -> None:
    """Refuse a part with a function that cannot be called as its contract says."""
    for name, function in vars(base).items():
        if not inspect.isfunction(function) or name.startswith("__"):
            continue
        wanted, found = inspect.signature(function).parameters, inspect.signature(getattr(part, name))
        try:
            if all(each.kind is not each.VAR_POSITIONAL for each in wanted.values()):
                found.bind(*wanted)
        except TypeError:
            raise ConfigError(f"{part.__name__}.{name} takes {found}, expected ({', '.join(wanted)})") from None


def form(value: Tensor) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}"


def instance(part: object, function: str, given: Any, expected: type) -> None:
    if not isinstance(given, expected):
        refuse(part, function, kind(given), article(expected.__name__))


def pair(part: object, function: str, given: Any) -> tuple[Any, Any]:
    """The messages and the memories that `local` returns."""
    if not isinstance(given, tuple) or len(given) != 2:
        refuse(part, function, kind(given), "two things, messages and memories")
    return given


def tensors(part: object, function: str, given: Any) -> Message:
    if not isinstance(given, Mapping):
        refuse(part, function, kind(given), "a dict of tensors by name")
    for name, value in given.items():
        if not isinstance(value, Tensor):
            refuse(part, function, f"{kind(value)} as {name!r}", "a tensor")
    return dict(given)


def reasons(part: object, given: Any, clients: Sequence[int]) -> dict[int, str]:
    """Why a rule left out these clients, in its own words."""
    if not isinstance(given, Mapping):
        refuse(part, "reasons", kind(given), "a dict: client -> why it was left out")
    for client, why in given.items():
        if client not in clients or not isinstance(why, str):
            refuse(part, "reasons", f"{why!r} for client {client!r}", f"words for some of the clients {list(clients)}")
    return dict(given)


def rows(part: object, function: str, given: Any, K: int) -> Message:
    """Tensors by name, each with K rows."""
    found = tensors(part, function, given)
    for name, value in found.items():
        if not value.ndim or len(value) != K:
            refuse(part, function, f"{name!r} of shape {tuple(value.shape)}", f"a row for each of the {K} clients")
    return found


def like(part: object, function: str, given: Any, expected: Mapping[str, Tensor]) -> Message:
    """Tensors with the names, shapes and types of `expected`."""
    found = tensors(part, function, given)
    if found.keys() != expected.keys():
        refuse(part, function, ", ".join(map(repr, found)) or "no tensors", ", ".join(map(repr, expected)) or "none")
    for name, right in expected.items():
        value = found[name]
        if (value.shape, value.dtype) != (right.shape, right.dtype):
            refuse(part, function, f"{name!r} as {form(value)}", form(right))
    return found


def vector(part: object, given: Any, length: int) -> Tensor:
    """The row of floats that an aggregation rule makes of all rows."""
    if not isinstance(given, Tensor) or given.shape != (length,) or not given.is_floating_point():
        refuse(part, "__call__", kind(given), f"one row of {length} floats")
    return given


@contextmanager
def pure(part: object, function: str, given: Mapping[str, Tensor]) -> Iterator[None]:
    """Refuse a function that changes tensors that it was given, or that draws from torch's global generator."""
    versions, drawn = {name: value._version for name, value in given.items()}, torch.get_rng_state()
    yield
    for name, value in given.items():
        if value._version != versions[name]:
            raise ConfigError(
                f"{type(part).__name__}.{function} changed the tensor {name!r} that it was given, expected a new "
                "tensor: x = x + y in place of x += y"
            )
    if not torch.equal(drawn, torch.get_rng_state()):
        raise ConfigError(
            f"{type(part).__name__}.{function} drew from torch's global generator, expected one that is made of a key, "
            'key.torch("purpose", device): otherwise no run can be repeated'
        )


def models(part: object, given: Any, D: int, F: int) -> None:
    """Models by name, `deployed` and `float` among them, each with the network's D voted and F float weights."""
    if not isinstance(given, Mapping) or {"deployed", "float"} - given.keys():
        refuse(part, "models", kind(given), "a dict that has 'deployed' and 'float'")
    for name, weights in given.items():
        if not isinstance(weights, Weights) or (len(weights.voted), len(weights.floats)) != (D, F):
            refuse(part, "models", f"{kind(weights)} as {name!r}", f"Weights of {D} voted and {F} float ones")


def soft_votes(part: object, given: Any, right_D: Tensor) -> Tensor:
    """The next soft vote, by a bound on influence: finite floats, one a weight."""
    if not isinstance(given, Tensor) or given.shape != right_D.shape or not given.is_floating_point():
        refuse(part, "__call__", kind(given), form(right_D))
    if not given.isfinite().all():
        refuse(part, "__call__", "soft votes that are NaN or infinite", "finite numbers")
    return given


def codecs(part: object, function: str, given: Any, tags: Mapping[int, type]) -> None:
    """Codecs by the names of tensors. `tags`: the numbers on the wire that the package's codecs have."""
    if not isinstance(given, Mapping):
        refuse(part, function, kind(given), "a dict of codecs by the names of tensors")
    for codec in given.values():
        if not isinstance(codec, owner := tags.get(codec.tag, object)):
            raise ConfigError(
                f"{type(codec).__name__}.tag is {codec.tag}, which {owner.__name__} has, expected a number of its own: "
                f"{max(tags) + 1} to 255"
            )


def numbers(part: object, function: str, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        refuse(part, function, kind(given), "a dict of numbers by name")
    for name, value in given.items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            found = repr(value) if isinstance(value, int | float) else kind(value)
            refuse(part, function, f"{found} as {name!r}", "a finite number")
    return {str(name): float(value) for name, value in given.items()}


def labels(part: object, given: Any, true_HB: Tensor, classes: int, function: str = "poison") -> Tensor:
    """Poisoned labels: of the shape of the true ones, each a class."""
    if not isinstance(given, Tensor) or given.shape != true_HB.shape or given.is_floating_point():
        refuse(part, function, kind(given), f"whole numbers of shape {tuple(true_HB.shape)}")
    if given.numel() and not 0 <= int(given.min()) <= int(given.max()) < classes:
        refuse(part, function, f"labels from {int(given.min())} to {int(given.max())}", f"0 to {classes - 1}")
    return given


def examples(part: object, given: Any, clean: Examples, classes: int) -> None:
    """Poisoned examples: as many as the clean ones, of their shape and type, each label a class."""
    if not isinstance(given, Examples):
        refuse(part, "poison_examples", kind(given), "Examples")
    if given.x.shape != clean.x.shape or given.x.dtype != clean.x.dtype:
        refuse(part, "poison_examples", f"inputs as {form(given.x)}", form(clean.x))
    labels(part, given.y, clean.y, classes, "poison_examples")
