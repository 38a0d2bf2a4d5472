"""The base class of parts and tables: a dataclass that checks its fields, in programs as in configurations.

TOML is checked as it is read. A program may pass anything: the string "false" would count as true, and half a round
would train to the end. An unknown name is refused with the one that is probably meant.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Iterable
from contextlib import suppress
from functools import wraps
from numbers import Real
from typing import Any, Literal, Self, SupportsIndex

from fedvote.errors import ConfigError, did_you_mean
from fedvote.registry import resolve_parts, type_hints

WORDS: dict[Any, tuple[str, str]] = {  # type -> singular, plural
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "True or False"),
    str: ("a string", "strings"),
    type(None): ("None", "None"),
}
NUMBERS = (int, float)
UNIONS = (typing.Union, types.UnionType)

OTHER_NAMES = {  # of other libraries -> here
    "learning_rate": "lr",
    "optimiser": "optimizer",
    "batch_size": "batch",
    "local_steps": "steps",
    "local_epochs": "epochs",
    "num_epochs": "epochs",
    "num_rounds": "rounds",
    "n_rounds": "rounds",
    "num_clients": "clients",
    "n_clients": "clients",
    "dataset": "data",
    "network": "model",
    "random_state": "seed",
}

OPTIONS = ("device", "out", "resume", "track", "trust")
"""Options of a command, which are no keys of a configuration."""


class Settings:
    """Checks all fields before a class's own `__post_init__` runs: no class has to remember it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in vars(cls):
            own = cls.__post_init__

            @wraps(own)
            def after_checks(self: Settings) -> None:
                Settings.__post_init__(self)
                own(self)

            cls.__post_init__ = after_checks  # type: ignore[method-assign]

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Refuse an unknown setting with the nearest known one: Python's TypeError names none."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        known = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)][1:]
        takes_all = any(each.kind == each.VAR_KEYWORD for each in parameters)  # perhaps a class of the user's own
        if not takes_all and (unknown := settings.keys() - set(known)):
            name = min(unknown)
            raise ConfigError(f"{cls.__name__} has no setting {name}; known: {', '.join(known)}{meant(name, known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        resolve_parts(self)
        check_fields(self)


def check_fields(part: Any) -> None:
    """Refuse a value of another type than its field declares. NumPy's numbers become Python's, and lists tuples."""
    hints = type_hints(type(part))
    for slot in dataclasses.fields(part):
        if not slot.init or "registry" in slot.metadata:
            continue
        given = getattr(part, slot.name)
        try:
            object.__setattr__(part, slot.name, _fitting(given, hints[slot.name]))
        except TypeError:
            raise ConfigError(f"{slot.name} is {given!r}, expected {_words(hints[slot.name])}") from None


def check_at_least(part: Any, **least: int) -> None:
    """Refuse a field that is below its least value: check_at_least(self, rounds=1)."""
    for name, lowest in least.items():
        if getattr(part, name) < lowest:
            raise ConfigError(f"{name} is {getattr(part, name)}, expected {lowest} or more")


def check_above_zero(part: Any, *names: str) -> None:
    """Refuse a field that is no finite number above 0."""
    for name in names:
        if not 0 < getattr(part, name) < math.inf:
            raise ConfigError(f"{name} is {getattr(part, name)}, expected a finite number above 0")


def _fitting(value: Any, kind: Any) -> Any:
    """The value, as a field of this type holds it; TypeError if it does not fit. Types not in `WORDS` fit anything."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    boolean = isinstance(value, bool)
    if origin in UNIONS:
        for each in args:
            with suppress(TypeError):
                return _fitting(value, each)
    elif origin is tuple and args[1:] == (...,):
        if isinstance(value, list | tuple):
            return tuple(_fitting(each, args[0]) for each in value)
    elif kind is int and isinstance(value, SupportsIndex) and not boolean:
        return value.__index__()
    elif kind is float and isinstance(value, Real) and not boolean:
        return float(value)
    elif origin is Literal:
        if value in args:
            return value
    elif kind not in WORDS or (kind not in NUMBERS and isinstance(value, kind)):
        return value
    raise TypeError


def _words(kind: Any, many: bool = False) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in WORDS:
        return WORDS[kind][many]
    if origin in UNIONS:
        return " or ".join(_words(each, many) for each in args)
    if origin is Literal:
        return f"one of: {', '.join(map(str, args))}"
    return f"{'lists' if many else 'a list'} of {_words(args[0], True)}" if origin is tuple else str(kind)


def name_here(name: str) -> str:
    """The setting's name in this package, if other libraries call it by `name`; else the name itself."""
    return OTHER_NAMES.get(name, name)


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown setting: the known one that is probably meant."""
    known = list(known)
    return f"; did you mean {name_here(name)}?" if name_here(name) in known else did_you_mean(name, known)
