"""Leaves the comments of a page, and the expressions behind its numbers, out of the site.

A number stays a link to its result file (docs/measured.py), without the expression that browsers would show beside it.
"""

from __future__ import annotations

import re
from typing import Any

from measured import LINK

COMMENT = re.compile(r"(?P<code>^```.*?^```|`[^`\n]+`)|<!--.*?-->\n?", re.DOTALL | re.MULTILINE)


def without_markers(text: str) -> str:
    """A page as readers see it. Comments in code are no markers."""
    return LINK.sub(r"[\1](\2)", COMMENT.sub(lambda hit: hit["code"] or "", text))


def clean(app: Any, name: str, source: list[str]) -> None:
    source[0] = without_markers(source[0])


def open_files(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Links to result files open in the browser, where Sphinx would save them."""
    if "body" in context:
        context["body"] = context["body"].replace(' download=""', "")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", clean, priority=900)  # after those that read markers
    app.connect("html-page-context", open_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
