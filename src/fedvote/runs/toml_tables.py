"""Tables to frozen dataclasses and back. Every key and type is checked; registries choose parts by name."""

from __future__ import annotations

import dataclasses
import inspect
import json
import numbers
import re
import tomllib
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from fedvote.contracts import signatures
from fedvote.errors import ConfigError, article
from fedvote.registry import as_class, find, item_of, name_of
from fedvote.runs.field_types import (
    LISTS,
    TABLES,
    default_of,
    expected,
    fields_of,
    is_table_class,
    item_types,
    origin_of,
    value_type,
)
from fedvote.runs.full_keys import full_keys
from fedvote.settings import OPTIONS, UNIONS, meant, name_here

Table = dict[str, Any]
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def apply(table: Table, setting: str) -> None:
    """Put `a.b=c` into a table. A new name for a part (`method=fedavg`) replaces the whole part."""
    path, equals, text = setting.partition("=")
    if not equals or not all(path.split(".")):
        raise ConfigError(f"--set {setting!r} is not of the form a.b=c; for example --set method.lr=0.01")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = path.split(".")
    for name in parents:
        child = table.setdefault(name, {})
        if isinstance(child, str):
            child = table[name] = {"name": child}
        if not isinstance(child, dict):
            raise ConfigError(f"--set {setting!r}: {name} is a value, not a table")
        table = child
    present = table.get(last)
    if not (isinstance(present, dict) and present.get("name") == value):  # the same name keeps the part's settings
        table[last] = value


def in_order(settings: Sequence[str]) -> list[str]:
    """Sort settings so that a part's name comes before the part's keys."""
    return sorted(settings, key=lambda setting: setting.partition("=")[0].count("."))


def check_order(settings: Sequence[str]) -> None:
    """Refuse a part's name after a setting of that part: it would undo the setting."""
    for at, setting in enumerate(settings):
        path = setting.partition("=")[0]
        for earlier in settings[:at]:
            if earlier.startswith(f"{path}."):
                raise ConfigError(f"--set {setting} would undo --set {earlier}: put it first")


# Why no library: msgspec is strict, but ignores unknown keys of a dataclass; cattrs accepts "3" and true as numbers;
# strict pydantic accepts no table for a dataclass. None knows registries, and we would replace all their error texts.
# What is left is `_convert`, which is shorter than the code to adapt one of them.
def build(cls: type, table: Any, where: str = "", base: Any = None, name: str = "") -> Any:
    """A dataclass from a table; every key and type is checked. Other keys are as in `base`, if there is one.

    Errors call the table by its key, `where`, and a part also by its own `name`.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} is {table!r}, expected a table")
    called = f"{where} {name!r}" if name else where or "the configuration"
    fields = fields_of(cls)
    values = {}
    for key, value in table.items():
        if key not in fields:
            raise ConfigError(
                f"{called} has no key {key!r}; known: {', '.join(fields) or 'none'}"
                f"{'' if where else _option(key)}{_one_level_down(name_here(key), fields) or meant(key, fields)}"
            )
        slot, kind = fields[key]
        path = f"{where}.{key}" if where else key
        if "registry" in slot.metadata:
            item = item_of(kind)
            values[key] = _build_parts(slot, item, value, path) if item else _build_part(slot, kind, value, path)
            continue
        try:
            named = is_table_class(kind) and isinstance(value, str)
            given, inner = {"name": value} if named else value, default_of(slot) if base is None else getattr(base, key)
            partly = is_table_class(kind) and isinstance(given, Mapping) and isinstance(inner, kind)
            values[key] = build(kind, given, path, inner) if partly else _convert(given, kind, path)
        except _MismatchError:
            raise ConfigError(f"{path} is {value!r}, expected {expected(kind)}") from None
    keys = {name: f"{where}.{name}" for name in fields} if where else {}
    if base is not None:
        with full_keys(keys):
            return dataclasses.replace(base, **values)
    missing = [name for name, (slot, _) in fields.items() if name not in values and _required(slot)]
    if missing:
        raise ConfigError(f"{called} needs {', '.join(missing)}: set it, or give it a default in the class")
    with full_keys(keys):
        return cls(**values)


def _option(key: str) -> str:
    """The end of a sentence about an option of the command that was given as a key; empty if it is none."""
    return f"; it is an option of the command, --{key}" if key in OPTIONS else ""


def _one_level_down(key: str, fields: Mapping[str, tuple[dataclasses.Field[Any], Any]]) -> str:
    """The end of a sentence about a key that belongs into a table inside; empty if none has it."""
    inside = {name: type(default_of(slot)) for name, (slot, _) in fields.items()}
    paths = [f"{name}.{key}" for name, kind in inside.items() if is_table_class(kind) and key in fields_of(kind)]
    return f"; did you mean {' or '.join(paths)}?" if paths else ""


def _required(slot: dataclasses.Field[Any]) -> bool:
    return default_of(slot) is dataclasses.MISSING


def _build_part(slot: dataclasses.Field[Any], base: type, value: Any, where: str) -> Any:
    """Make a part, chosen by name from a registry; without a name, the default part."""
    registry = slot.metadata["registry"]
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} is {value!r}, expected a name or a table; known: {', '.join(registry)}")
    name = str(table["name"] if "name" in table else name_of(registry, slot.default))
    options = {key: value for key, value in table.items() if key != "name"}
    chosen = find_part(registry, base, name, where)
    return build(chosen, options, where, None if "name" in table else slot.default, name)


def _build_parts(slot: dataclasses.Field[Any], base: type, value: Any, where: str) -> tuple[Any, ...]:
    """Any number of parts, each a name or a table with a name."""
    registry = slot.metadata["registry"]
    items = value if isinstance(value, list) else [None]
    if not all(isinstance(each, str) or (isinstance(each, Mapping) and "name" in each) for each in items):
        raise ConfigError(
            f"{where} is {value!r}, expected a list of names, or of tables with a name; known: {', '.join(registry)}"
        )
    return tuple(_build_part(slot, base, each, f"{where}[{index}]") for index, each in enumerate(value))


def find_part(registry: Mapping[str, Any], base: type, name: str, where: str) -> type:
    """The class of this name, from a registry or the user's own file; ConfigError if methods are missing."""
    kind = as_class(find(registry, name, where), base)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(f"{where} {name!r} is not {article(base.__name__)}; known: {', '.join(registry)}")
    if inspect.isabstract(kind):
        missing = [member for member in dir(kind) if getattr(getattr(kind, member), "__isabstractmethod__", False)]
        raise ConfigError(f"{where} {name!r} is not complete: it lacks {', '.join(missing)}")
    own = [hint for hint in inspect.get_annotations(kind).values() if "ClassVar" not in str(hint)]
    if own and "__dataclass_params__" not in vars(kind):
        raise ConfigError(f"{where} {name!r} has fields, but is not a dataclass: put @dataclass(frozen=True) above it")
    if "name" in fields_of(kind):
        raise ConfigError(f"{where} {name!r} has a field called name, by which the part itself is chosen: rename it")
    signatures(kind, base)
    return kind


class _MismatchError(Exception):
    """A value does not have its field's type. `build`, which knows the field, turns this into a ConfigError."""


def _convert(value: Any, kind: Any, where: str) -> Any:
    """Convert a TOML value to a field's type. Strings and booleans are never taken for numbers."""
    origin = origin_of(kind)
    if origin in UNIONS:
        for option in typing.get_args(kind):
            with suppress(_MismatchError):
                return _convert(value, option, where)
    elif origin is Literal:
        if (type(value), value) in [(type(each), each) for each in typing.get_args(kind)]:
            return value
    elif origin in LISTS and isinstance(value, list):
        kinds = item_types(kind, len(value))
        if len(kinds) == len(value):
            return origin(_convert(value[i], each, f"{where}[{i}]") for i, each in enumerate(kinds))
    elif origin in TABLES and isinstance(value, Mapping):
        return {key: _convert(each, value_type(kind), f"{where}.{key}") for key, each in value.items()}
    elif is_table_class(kind) and isinstance(value, Mapping):
        return build(kind, value, where)
    elif kind is float and type(value) in (int, float) and value == value:  # a run with NaN would differ from itself
        with suppress(OverflowError):
            return float(value)
    elif kind is Any or (kind in (int, str, bool) and type(value) is kind):
        return value
    raise _MismatchError


def as_table(part: Any) -> Table:
    """Every field of a configuration, as TOML can hold it; fields that are None are left out."""
    table: Table = {}
    for slot in dataclasses.fields(part):
        value, name = getattr(part, slot.name), f"{type(part).__name__}.{slot.name}"
        if "registry" in slot.metadata:
            parts = [{"name": name_of(slot.metadata["registry"], each), **as_table(each)} for each in listed(value)]
            table[slot.name] = parts if isinstance(value, tuple) else parts[0]
        elif slot.init and value is not None:
            table[slot.name] = to_plain(value, name)
        elif slot.init and default_of(slot) is not None:
            raise ConfigError(f"{name} is None, which TOML cannot hold: make None its default, or give it a value")
    return table


def listed(value: Any) -> tuple[Any, ...]:
    """The parts in a field that holds one part, or any number of them."""
    return value if isinstance(value, tuple) else (value,)


def to_plain(value: Any, name: str = "the value") -> Any:
    """A value as tables, lists, strings, booleans and numbers."""
    if dataclasses.is_dataclass(value):
        return as_table(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: to_plain(each, f"{name}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each, f"{name}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Real):  # NumPy's numbers, too
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    raise ConfigError(f"{name} is {value!r}, which TOML cannot hold: use numbers, strings, booleans, lists and tables")


def to_toml(table: Table, path: str = "") -> str:
    """Write a table of tables, strings, numbers, booleans and lists as TOML. An empty table keeps its heading."""
    sections = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {inline_toml(value)}" for key, value in table.items() if key not in sections]
    text = "\n".join(([f"[{path}]"] if path and (lines or not table) else []) + lines)
    parts = [text] if text else []
    for key, value in sections.items():
        parts.append(to_toml(dict(value), f"{path}.{_key(key)}" if path else _key(key)).rstrip())
    return "\n\n".join(parts) + "\n"


def inline_toml(value: Any) -> str:
    """A value as TOML, in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(inline_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {inline_toml(each)}' for key, each in value.items())}}}"
    if isinstance(value, float):
        return repr(value)  # JSON writes infinities in another way
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML wants it escaped, JSON does not


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else inline_toml(key)
