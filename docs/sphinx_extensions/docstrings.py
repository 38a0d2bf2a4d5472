"""Docstrings of the package as reStructuredText: lines `name: meaning` become a list of parameters.

Fields of a dataclass are described by the comments beside them, as `fedvote keys` does it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import Any

from docutils.nodes import Text

from fedvote.plan import comments

SPECIAL = re.compile(r"([*|]|_(?=\W|$))")
PARAMETERS = re.compile(r"`?(\w+(?:`?, `?\w+)*)`?: (.+)")


def as_fields(lines: list[str], names: list[str]) -> list[str]:
    """The text, then a field for each parameter in the order of the signature; text goes on below its own parameter."""
    text: list[str] = []
    meanings: dict[str, list[str]] = {}
    below: list[str] | None = None  # the meaning that the last line belongs to
    for line in lines:
        hit = PARAMETERS.fullmatch(line)
        if hit and set(names).issuperset(described := hit[1].replace("`", "").split(", ")):
            below = [literal(hit[2])]
            meanings |= dict.fromkeys(described, below)
        elif below is not None and line.strip():
            below.append(literal(line.strip()))
        else:
            text, below = [*text, literal(line)], None
    fields = [f":param {name}: {' '.join(meanings.get(name, []))}" for name in names] if meanings else []
    return [*text, "", *fields]


def literal(line: str) -> str:
    """Outside of `code` no character has a meaning, and a word may follow `code`s at once."""
    first, *parts = line.split("`")
    found = re.sub(SPECIAL, r"\\\1", first)
    for index, part in enumerate(parts):
        is_code = index % 2 == 0
        found += "`" + (part if is_code else re.sub(r"^(?=\w)", r"\\ ", re.sub(SPECIAL, r"\\\1", part)))
    return found


def signature_names(thing: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def read(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and dataclasses.is_dataclass(thing) and isinstance(thing, type):
        if not any(lines) or lines[0].startswith(f"{thing.__name__}("):  # no docstring, or the one of dataclass
            lines[:] = (sys.modules[thing.__module__].__doc__ or "").splitlines()[:1]
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
