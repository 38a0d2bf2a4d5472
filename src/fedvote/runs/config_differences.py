"""Two configurations, compared key by key."""

from __future__ import annotations

from typing import Any

from fedvote.runs.config import Config
from fedvote.runs.toml_tables import as_table


def differences(a: Config, b: Config) -> list[str]:
    """One phrase for every key whose values differ: `a` is the one on disk, `b` the one asked for."""
    left, right = flat(as_table(a)), flat(as_table(b))
    return [
        f"{k} ({left.get(k)!r} there, {right.get(k)!r} asked)" for k in {**left, **right} if left.get(k) != right.get(k)
    ]


def flat(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Every key of a configuration, as a.b, with its value."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        inner = dict(enumerate(value)) if isinstance(value, list) and any(isinstance(e, dict) for e in value) else value
        found |= flat(inner, f"{path}{key}.") if isinstance(inner, dict) else {f"{path}{key}": value}
    return found
