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
from fedvote.runs.field_types import default_of, expected, fields_of, is_table_class, tables_in
from fedvote.runs.toml_tables import find_part, inline_toml, to_plain

NAME = "a name"  # what a key takes that chooses a part


@dataclass(frozen=True)
class Setting:
    """One key: `of` names the part that has it, as in `method (fedvote)`."""

    of: str
    key: str
    default: str
    meaning: str
    takes: str  # what to write, for a key without a meaning


def settings(start: str = "") -> list[Setting]:
    """Those whose key begins with `start`, in the order of a configuration file.

    `method=NAME` asks for one method alone, which may be a user's own FILE.py:NAME; so with every part.
    """
    key, _, name = start.partition("=")
    found = [setting for setting in _of(Config, "", "", {key: name} if name else {}) if setting.key.startswith(key)]
    if not found:
        known = ", ".join(field.name for field in dataclasses.fields(Config))
        raise ConfigError(f"no key begins with {key!r}; at the top there are: {known}")
    if name and not any(setting.key == key and setting.takes == NAME for setting in found):
        raise ConfigError(f"{start!r} names a part, but {key} has none; try method=fedavg, or {key} alone")
    return found


def _of(
    kind: type[Any], path: str, of: str, chosen: Mapping[str, str], made: Any = None, above: tuple[type, ...] = ()
) -> Iterator[Setting]:
    """The keys of a class, or of one made of it. Parts follow: of a registry the `chosen` one, or else all."""
    remarks, parts, inside = comments(kind), [], (*above, kind)
    for name, (slot, hint) in fields_of(kind).items():
        key, default, remark = path + name, getattr(made, name, default_of(slot)), remarks.get(name, "")
        registry: Mapping[str, type[Any]] | None = slot.metadata.get("registry")
        if registry is not None:
            yield Setting(of, key, _written(name_of(registry, default)), remark, NAME)
            wanted = {chosen[key]: find_part(registry, hint, chosen[key], key)} if key in chosen else registry
            parts += [_of(part, f"{key}.", f"{key} ({called})", chosen) for called, part in wanted.items()]
            continue
        if not is_table_class(hint):
            yield Setting(of, key, _written(default), remark, expected(hint))
        for at, table in tables_in(hint):
            if table not in inside:  # else they would never end
                made_of_it = default if isinstance(default, table) else None
                parts.append(_of(table, f"{key}{at}.", f"{key}{at}", chosen, made_of_it, inside))
    for part in parts:
        yield from part


def _written(value: object) -> str:
    if value is None:
        return "not given"
    return "required" if value is dataclasses.MISSING else inline_toml(to_plain(value))
