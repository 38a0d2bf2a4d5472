"""HTML by functions: whatever is not markup already is escaped on its way into a tag."""

from __future__ import annotations

import json
from html import escape


class Html(str):
    """A string that is markup already."""

    __slots__ = ()


def markup(text: str) -> Html:
    return text if isinstance(text, Html) else Html(escape(text))


def join(*parts: str) -> Html:
    return Html("".join(markup(part) for part in parts))


def tag(name: str, *children: str, **attributes: object) -> Html:
    """One element. `class_` stands for class and `aria_label` for aria-label; an attribute that is None is left out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opening = name + "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Html(f"<{opening}>{join(*children)}</{name}>")


def data_block(data: object) -> Html:
    """Data for the script beside it. The one character that could end the block early is written as its number."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json")
