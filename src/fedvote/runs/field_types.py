"""The types that a configuration's fields may have, and their names in plain words."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from fedvote.errors import ConfigError
from fedvote.registry import cached, type_hints
from fedvote.settings import UNIONS

LISTS = (list, tuple)
TABLES = (dict, Mapping)
PLAIN: dict[Any, tuple[str, str, tuple[str, str]]] = {  # type -> singular, plural, two examples in TOML
    int: ("a whole number", "whole numbers", ("3", "4")),
    float: ("a number", "numbers", ("0.5", "2.0")),
    bool: ("true or false", "true or false", ("true", "false")),
    str: ("a string", "strings", ('"a"', '"b"')),
    Any: ("a value", "values", ("3", '"a"')),
    type(None): ("nothing", "nothing", ("", "")),
}
SUPPORTED = "int, float, bool, str, Literal, dataclasses, list, tuple or dict[str, ...] of these, and `| None`"


class UnsupportedError(Exception):
    """A type that TOML cannot hold."""


@cached
def fields_of(cls: type) -> dict[str, tuple[dataclasses.Field[Any], Any]]:
    """Name -> field and type, of a dataclass's settable fields; ConfigError for a type that TOML cannot hold."""
    hints = type_hints(cls)
    fields = {slot.name: (slot, hints[slot.name]) for slot in dataclasses.fields(cls) if slot.init}
    for name, (slot, kind) in fields.items():
        try:
            if "registry" not in slot.metadata:
                words(kind)
        except UnsupportedError:
            raise ConfigError(
                f"{cls.__name__} declares its field {name} as {inspect.formatannotation(kind)}, which a configuration "
                f"cannot hold; supported: {SUPPORTED}; make it a ClassVar if it is not a setting"
            ) from None
    return fields


def default_of(slot: dataclasses.Field[Any]) -> Any:
    """A field's default, or dataclasses.MISSING."""
    return slot.default_factory() if slot.default_factory is not dataclasses.MISSING else slot.default


def expected(kind: Any) -> str:
    """A type in words, with an example: a list of whole numbers such as [3, 4]."""
    if typing.get_origin(kind) in UNIONS:
        return " or ".join(map(expected, typing.get_args(kind)))
    return f"{words(kind)} such as {_example(kind)}" if origin_of(kind) in (*LISTS, *TABLES) else words(kind)


def words(kind: Any, many: bool = False) -> str:
    """A type in words, singular or plural; UnsupportedError if TOML cannot hold it."""
    origin, args = origin_of(kind), typing.get_args(kind)
    if kind in PLAIN:
        one, several, _ = PLAIN[kind]
        return several if many else one
    if origin is Literal and all(isinstance(each, str | int) for each in args):
        choices = list(map(str, args))
        return " or ".join(choices) if many else f"one of: {', '.join(choices)}"
    if origin in UNIONS and _distinguishable(args):
        return " or ".join(words(each, many) for each in args)
    if is_table_class(kind):
        return "tables" if many else "a table"
    if origin in LISTS:
        items = item_types(kind, 2)
        inside = words(items[0], True) if _repeats(kind) else " and ".join(map(words, items)) or "nothing"
        return f"{'lists' if many else 'a list'} of {inside}"
    if origin in TABLES and (not args or args[0] is str):
        return f"{'tables' if many else 'a table'} of {words(value_type(kind), True)}"
    raise UnsupportedError


def _distinguishable(options: tuple[Any, ...]) -> bool:
    """Whether a value tells which of these types it has: at most one is a list, and at most one a table."""
    shapes = [origin_of(each) in LISTS for each in options if origin_of(each) in LISTS or takes_table(each)]
    return len(shapes) == len(set(shapes))


def _example(kind: Any, at: int = 0) -> str:
    """An example in TOML: the first or the second, by `at`."""
    origin, args = origin_of(kind), typing.get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind][2][at]
    if origin is Literal:
        return json.dumps(args[at % len(args)])
    if origin in UNIONS:
        return _example(next(each for each in args if each is not type(None)), at)
    if origin in LISTS:
        return f"[{', '.join(_example(each, index % 2) for index, each in enumerate(item_types(kind, 2)))}]"
    if origin in TABLES:
        return f"{{a = {_example(value_type(kind), at)}}}"
    return f"{{{next((f'{slot.name} = ...' for slot in dataclasses.fields(kind)), '')}}}"


def origin_of(kind: Any) -> Any:
    return typing.get_origin(kind) or kind


def is_table_class(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def takes_table(kind: Any) -> bool:
    return is_table_class(kind) or origin_of(kind) in TABLES


def _repeats(kind: Any) -> bool:
    """Whether a list may be of any length."""
    args = typing.get_args(kind)
    return origin_of(kind) is list or kind is tuple or args[1:] == (...,)


def item_types(kind: Any, length: int) -> tuple[Any, ...]:
    """The type of each item, for a list of this length; a tuple of fixed length has its own."""
    args = typing.get_args(kind)
    return (args or (Any,))[:1] * length if _repeats(kind) else args


def value_type(kind: Any) -> Any:
    """The type of a dict's values."""
    return (typing.get_args(kind) or (str, Any))[1]


def tables_in(kind: Any, path: str = "") -> Iterator[tuple[str, type]]:
    """The dataclasses inside a type, each after its path: `[]` in a list, `.NAME` in a dict."""
    origin = origin_of(kind)
    if is_table_class(kind):
        yield path, kind
    elif origin in UNIONS:
        for each in typing.get_args(kind):
            yield from tables_in(each, path)
    elif origin in LISTS:
        for each in dict.fromkeys(item_types(kind, 1)):
            yield from tables_in(each, f"{path}[]")
    elif origin in TABLES:
        yield from tables_in(value_type(kind), f"{path}.NAME")
