"""Every key of a configuration: its default, and what its own line in the source says about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedvote.errors import ConfigError
from fedvote.plan import comments
from fedvote.registry import name_of
from fedvote.runs.config import Config


@dataclass(frozen=True)
class Setting:
    """One key: `of` names the part that has it, as in `method (fedvote)`."""

    of: str
    key: str
    default: str
    meaning: str


def settings(start: str = "") -> list[Setting]:
    """Those whose key begins with `start`, in the order of a configuration file."""
    found = [setting for setting in _of(Config, "", "") if setting.key.startswith(start)]
    if not found:
        known = ", ".join(field.name for field in dataclasses.fields(Config))
        raise ConfigError(f"no key begins with {start!r}; at the top there are: {known}")
    return found


def _of(kind: type[Any], path: str, of: str) -> Iterator[Setting]:
    remarks, parts = comments(kind), []
    for slot in dataclasses.fields(kind):
        key, default = path + slot.name, _default(slot)
        registry: Mapping[str, type[Any]] | None = slot.metadata.get("registry")
        if registry is not None:
            yield Setting(of, key, _written(name_of(registry, default)), remarks.get(slot.name, ""))
            parts += [_of(part, f"{key}.", f"{key} ({name})") for name, part in registry.items()]
        elif dataclasses.is_dataclass(default):
            parts.append(_of(type(default), f"{key}.", key))
        else:
            yield Setting(of, key, _written(default), remarks.get(slot.name, ""))
    for part in parts:
        yield from part


def _default(slot: dataclasses.Field[Any]) -> Any:
    return slot.default_factory() if callable(slot.default_factory) else slot.default


def _written(value: object) -> str:
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
