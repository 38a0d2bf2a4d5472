"""Markdown that programs write: escaped text, and directives of generated pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx.util.docutils import SphinxDirective


def directive(write: Callable[[], str]) -> Any:
    """A directive whose content is the Markdown that a function writes."""

    def run(self: Any) -> Any:
        return self.parse_text_to_nodes(write(), allow_section_headings=True)

    return type(write.__name__, (SphinxDirective,), {"run": run})


def escaped(text: str) -> str:
    """Text for a cell of a table, in which no character has a meaning; `code` stays code."""
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return "`".join(
        part.replace("*", "\\*").replace("_", "\\_") if index % 2 == 0 else part
        for index, part in enumerate(text.split("`"))
    )
