"""The directive `configuration-keys`: every key, from the dataclasses, as `fedvote keys` prints it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from fedvote.runs.keys import Setting, settings
from sphinx_extensions.markdown import directive, escaped


def table(rows: list[Setting]) -> str:
    lines = [f"| `{row.key}` | {code(row.default)} | {escaped(row.meaning or row.takes)} |" for row in rows]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *lines])


def code(default: str) -> str:
    return default if default in ("required", "not given") else f"`{default.replace('|', chr(92) + '|')}`"


def keys_page() -> str:
    """A section for each table of a configuration file, and in it the keys of every part that it may name."""
    found = []
    for key, of_key in groupby(settings(), lambda setting: setting.of.partition(" ")[0].partition(".")[0]):
        found.append(f"## {key or 'At the top'}")
        for of, rows in groupby(of_key, lambda setting: setting.of):
            found += [*([f"**{of}**"] if of != key else []), table(list(rows))]
    return "\n\n".join(found)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("configuration-keys", directive(keys_page))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
