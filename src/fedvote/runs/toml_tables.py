"""Tables to frozen dataclasses and back: every key and type is checked, parts are chosen by name from registries."""

from __future__ import annotations

import dataclasses
import inspect
import json
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from fedvote.errors import ConfigError
from fedvote.registry import find, name_of

Table = dict[str, Any]


def apply(table: Table, setting: str) -> None:
    """Put `a.b=c` into a table. Another name for a whole part (`method=fedavg`) replaces that part."""
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
    there = table.get(last)
    if not (isinstance(there, dict) and there.get("name") == value):  # else it is that part already
        table[last] = value


def check_order(settings: Sequence[str]) -> None:
    """Refuse a name for a whole part after a setting of that part, which it would undo."""
    for at, setting in enumerate(settings):
        path = setting.partition("=")[0]
        for earlier in settings[:at]:
            if earlier.startswith(f"{path}."):
                raise ConfigError(f"--set {setting} would undo --set {earlier}: put it first")


def build(cls: type, table: Any, where: str = "") -> Any:
    """A dataclass from a table; every key and every type is checked."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} is {table!r}, expected a table")
    fields, hints = {f.name: f for f in dataclasses.fields(cls)}, typing.get_type_hints(cls)
    values = {}
    for key, value in table.items():
        if key not in fields:
            raise ConfigError(
                f"{where or 'the configuration'} has no key {key!r}; known: {', '.join(fields) or 'none'}"
            )
        path = f"{where}.{key}" if where else key
        if "registry" in fields[key].metadata:
            values[key] = _build_part(fields[key], hints[key], value, path)
        elif dataclasses.is_dataclass(hints[key]):
            values[key] = build(
                typing.cast(type, hints[key]), {"name": value} if isinstance(value, str) else value, path
            )
        else:
            values[key] = _convert(value, hints[key], path)
    missing = [
        name
        for name, slot in fields.items()
        if slot.init
        and name not in values
        and slot.default is dataclasses.MISSING
        and slot.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{where} needs {', '.join(missing)}, which has no default: set it, or give it one")
    return cls(**values)


def _build_part(slot: dataclasses.Field[Any], expected: type, value: Any, where: str) -> Any:
    """A part chosen by name from a registry; without a name, the default one."""
    registry = slot.metadata["registry"]
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} is {value!r}, expected a name or a table; known: {', '.join(registry)}")
    name = table.get("name", name_of(registry, slot.default))
    options = {key: value for key, value in table.items() if key != "name"}
    kind = find(registry, str(name), where)
    if not (isinstance(kind, type) and issubclass(kind, expected)):
        raise ConfigError(f"{where} {name!r} is not a {expected.__name__}; known: {', '.join(registry)}")
    if inspect.isabstract(kind):
        missing = [member for member in dir(kind) if getattr(getattr(kind, member), "__isabstractmethod__", False)]
        raise ConfigError(f"{where} {name!r} is not complete: it lacks {', '.join(missing)}")
    return build(kind, options, f"{where} {name!r}")


def _convert(value: Any, kind: Any, where: str) -> Any:
    """A TOML value as the type a field declares, or ConfigError."""
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    for option in options:
        plain = typing.get_origin(option) or option
        if plain is tuple and isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
        if plain is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if plain is Mapping and isinstance(value, Mapping):
            return dict(value)
        if plain in (int, str, bool) and type(value) is plain:
            return value
    called: dict[Any, str] = {tuple: 'a list of strings such as ["a", "b"]', type(None): "nothing", Mapping: "a table"}
    kinds = [typing.get_origin(option) or option for option in options]
    names = " or ".join(called[kind] if kind in called else getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise ConfigError(f"{where} is {value!r}, expected {names}")


def as_table(part: Any) -> Table:
    """Every field of a configuration, as TOML can hold it; what is None is left out."""
    table: Table = {}
    for slot in dataclasses.fields(part):
        value = getattr(part, slot.name)
        if "registry" in slot.metadata:
            table[slot.name] = {"name": name_of(slot.metadata["registry"], value), **as_table(value)}
        elif dataclasses.is_dataclass(value):
            table[slot.name] = as_table(value)
        elif value is not None:
            table[slot.name] = list(value) if isinstance(value, tuple) else value
    return table


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # whose infinities are not JSON
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def to_toml(table: Table, path: str = "") -> str:
    """A table of tables, strings, numbers, booleans and lists of them, as TOML."""
    lines = [f"{key} = {_toml(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    text = "\n".join(([f"[{path}]"] if path and lines else []) + lines)
    parts = [text] if text else []
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            parts.append(to_toml(dict(value), f"{path}.{key}" if path else key).rstrip())
    return "\n\n".join(parts) + "\n"
