"""HTML by functions: a tag escapes all text that is not markup yet."""

from __future__ import annotations

import json
from html import escape

VOID = ("input",)  # elements without content


class Html(str):
    """A string that is markup already."""

    __slots__ = ()


def markup(text: str) -> Html:
    return text if isinstance(text, Html) else Html(escape(text))


def join(*parts: str) -> Html:
    return Html("".join(markup(part) for part in parts))


def tag(name: str, *children: str, **attributes: object) -> Html:
    """One element. `class_` means class, `aria_label` means aria-label; attributes that are None are left out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opening = name + "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Html(f"<{opening}>{join(*children)}" + ("" if name in VOID else f"</{name}>"))


def meter(share: float) -> Html:
    """A bar that is filled up to a share between 0 and 1. The number stands beside it as text."""
    return tag("i", class_="meter", style=f"--share: {100 * min(1, max(0, share)):.1f}%", aria_hidden="true")


def data_block(data: object) -> Html:
    """JSON for the page's script. "<" is escaped: it could end the block early."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json")
