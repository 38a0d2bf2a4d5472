"""Every key of a configuration: its default, and the comment beside it in the source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedvote.errors import ConfigError, did_you_mean
from fedvote.plan import comments
from fedvote.registry import item_of, name_of
from fedvote.runs.config import Config
from fedvote.runs.field_types import default_of, expected, fields_of, is_table_class, tables_in
from fedvote.runs.toml_tables import find_part, inline_toml, to_plain

NAME = "a name"  # the value of a key that chooses a part


@dataclass(frozen=True)
class Setting:
    """One key of a part; `of` names the part, as in `method (fedvote)`."""

    of: str
    key: str
    default: str
    meaning: str
    takes: str  # its type in words, to show if there is no meaning


def settings(start: str = "") -> list[Setting]:
    """The keys that begin with `start`, in the order of a configuration file.

    `method=NAME` asks for one method only, which may be the user's own FILE.py:NAME. The same holds for other parts.
    """
    key, _, name = start.partition("=")
    every = list(_of(Config, "", "", {key: name} if name else {}))
    matching = [each for each in every if each.key.startswith(key)]
    if not matching:
        known = [field.name for field in dataclasses.fields(Config)]
        inside = dict.fromkeys(each.key for each in every if each.key.endswith(f".{key}"))
        meant = f"; did you mean {' or '.join(inside)}?" if inside else did_you_mean(key, known)
        raise ConfigError(f"no key begins with {key!r}; keys at the top: {', '.join(known)}{meant}")
    if name and not any(setting.key == key and setting.takes == NAME for setting in matching):
        raise ConfigError(f"{start!r} names a part, but {key} has none; give {key} alone, or a part: method=fedavg")
    return matching


def _of(
    kind: type[Any], path: str, of: str, chosen: Mapping[str, str], instance: Any = None, above: tuple[type, ...] = ()
) -> Iterator[Setting]:
    """The keys of a class, with an instance's defaults if given; then those of its parts, only `chosen` ones or all."""
    remarks, parts, inside = comments(kind), [], (*above, kind)
    for name, (slot, hint) in fields_of(kind).items():
        key, default, remark = path + name, getattr(instance, name, default_of(slot)), remarks.get(name, "")
        registry: Mapping[str, type[Any]] | None = slot.metadata.get("registry")
        if registry is not None:
            item, many = item_of(hint) or hint, "[]" * bool(item_of(hint))
            yield Setting(of, key, _written(list(default) if many else name_of(registry, default)), remark, NAME)
            wanted = {chosen[key]: find_part(registry, item, chosen[key], key)} if key in chosen else registry
            parts += [_of(part, f"{key}{many}.", f"{key} ({called})", chosen) for called, part in wanted.items()]
            continue
        if not is_table_class(hint):
            yield Setting(of, key, _written(default), remark, expected(hint))
        for at, table in tables_in(hint):
            if table not in inside:  # a class inside itself would never end
                example = default if isinstance(default, table) else None
                parts.append(_of(table, f"{key}{at}.", f"{key}{at}", chosen, example, inside))
    for part in parts:
        yield from part


def _written(value: object) -> str:
    if value is None:
        return "not given"
    return "required" if value is dataclasses.MISSING else inline_toml(to_plain(value))
