"""The directive `part-names`: every name that a configuration can use, as `fedvote list` prints it."""

from __future__ import annotations

from typing import Any

from fedvote.runs.catalogue import catalogue
from sphinx_extensions.markdown import directive, escaped


def names_page() -> str:
    """A section for each kind of part, with a table of its names."""
    found = []
    for kind, parts in catalogue().items():
        rows = [f"| `{name}` | {escaped(about)} |" for name, about in parts.items()]
        found += [f"## {kind.capitalize()}", "\n".join(["| name | |", "|---|---|", *rows])]
    return "\n\n".join(found)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("part-names", directive(names_page))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
