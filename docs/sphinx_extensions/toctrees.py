"""Makes the site's contents of ordinary lists of links.

    ## Tutorials
    <!-- contents -->
    - [Attack and defend](tutorials/attack-and-defend.md): ...
    <!-- end of contents -->

The pages that are linked between the two comments come below this page, in this order and under the heading. Their
names are the texts of the links.
"""

from __future__ import annotations

import re
from typing import Any

CONTENTS = re.compile(r"<!-- contents -->\n(.*?)<!-- end of contents -->\n?", re.DOTALL)
PAGE = re.compile(r"\[([^\]]+)\]\(([\w./-]+)\.md\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def toctree(text: str, contents: re.Match[str]) -> str:
    heading = HEADING.findall(text[: contents.start()])[-1]
    titles: dict[str, str] = {}
    for title, page in PAGE.findall(contents[1]):
        titles.setdefault(page, title)
    pages = [f"{title} <{page}>" for page, title in titles.items()]
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```", ""])


def with_toctrees(text: str) -> str:
    """A page with a hidden toctree below each list of contents."""
    return CONTENTS.sub(lambda contents: f"{contents[1]}\n{toctree(text, contents)}", text)


def read(app: Any, name: str, source: list[str]) -> None:
    source[0] = with_toctrees(source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
