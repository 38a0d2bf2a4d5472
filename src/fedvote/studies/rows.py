"""Rows of numbers: choose them by name, and write them as a text table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedvote.errors import ConfigError

Rows = list[dict[str, Any]]
"""Rows with the same keys. Values that are lists go into files; a table leaves them out."""


def chosen(only: Sequence[str], known: Iterable[str], about: str) -> list[str]:
    """The names in `only`, in the order of `known`; all known names if it is empty."""
    names = list(dict.fromkeys(known))
    if unknown := [name for name in only if name not in names]:
        raise ConfigError(f"there is no row {unknown[0]!r} in {about!r}; it has: {'; '.join(names)}")
    return [name for name in names if not only or name in only]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as text, with aligned columns."""
    head, body = cells(rows)
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    return "\n".join("  ".join(t.rjust(w) for t, w in zip(line, widths, strict=True)) for line in (head, *body))


def cells(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings of a table, and the texts of its rows."""
    head = [name for name, value in rows[0].items() if not isinstance(value, list)]
    return head, [[text(row[name]) for name in head] for row in rows]


def text(value: Any) -> str:
    """A value as tables show it: floats with four digits, None as nothing."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
