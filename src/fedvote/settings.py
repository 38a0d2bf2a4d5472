"""The base of all that a configuration declares, parts and tables: fields hold values of their types, in programs, too.

TOML is checked as it is read. A program may pass anything: the string "false" would count as true, and half a round
would train to the end.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from contextlib import suppress
from functools import wraps
from numbers import Real
from typing import Any, Literal, SupportsIndex

from fedvote.errors import ConfigError
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


class Settings:
    """A dataclass whose fields are checked before its own `__post_init__` runs: no class has to remember it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in vars(cls):
            own = cls.__post_init__

            @wraps(own)
            def after_checks(self: Settings) -> None:
                Settings.__post_init__(self)
                own(self)

            cls.__post_init__ = after_checks  # type: ignore[method-assign]

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
