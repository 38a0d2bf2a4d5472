"""Docstrings of the package as reStructuredText: lines `name: meaning` become a list of parameters.

Fields of a dataclass are described by the comments beside them, as `fedvote keys` does it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from docutils.nodes import Text

from fedvote.plan import comments

PARAMETERS = re.compile(r"`?(\w+(?:`?, `?\w+)*)`?: (.+)")


def as_fields(lines: list[str], names: set[str]) -> list[str]:
    """Lines of parameters as fields, with an empty line where they begin; text goes on below its own field."""
    found: list[str] = []
    for line in lines:
        hit = PARAMETERS.fullmatch(line)
        if hit and names.issuperset(hit[1].replace("`", "").split(", ")):
            begins = not found or not found[-1].startswith((":param", "    "))
            found += [*([""] if begins else []), f":param {hit[1].replace('`', '')}: {literal(hit[2])}"]
        elif found and found[-1].startswith((":param", "    ")) and line.strip():
            found.append(f"    {literal(line.strip())}")
        else:
            found.append(literal(line))
    return found


def literal(line: str) -> str:
    """Stars and bars outside of `code` have no meaning."""
    parts = line.split("`")
    return "`".join(re.sub(r"([*|])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts))


def signature_names(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


def read(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and dataclasses.is_dataclass(thing) and isinstance(thing, type):
        if lines and lines[0].startswith(f"{thing.__name__}("):
            lines[:] = []  # the signature, which dataclass writes where there is no docstring
        names = signature_names(thing)
        lines += ["", *(f"{field}: {about}" for field, about in comments(thing).items() if field in names)]
    lines[:] = as_fields(lines, signature_names(thing))


def sign(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returns: str) -> Any:
    """The fields of a dataclass with their defaults; their types stand in the list of parameters."""
    if what != "class" or not dataclasses.is_dataclass(thing):
        return None
    plain = inspect.signature(thing)  # type: ignore[arg-type]
    fields = [each.replace(annotation=inspect.Parameter.empty) for each in plain.parameters.values()]
    return str(plain.replace(parameters=fields, return_annotation=inspect.Signature.empty)), ""


def with_colons(app: Any, doctree: Any) -> None:
    """`name: meaning`, as the package writes it, where Sphinx has two dashes."""
    for dashes in [node for node in doctree.findall(Text) if node == " -- "]:
        dashes.parent.replace(dashes, Text(": "))


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", read)
    app.connect("autodoc-process-signature", sign)
    app.connect("doctree-read", with_colons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
