"""Makes the site's contents of ordinary lists of links.

    ## Tutorials
    <!-- contents -->
    - [Attack and defend](tutorials/attack-and-defend.md): ...
    <!-- end of contents -->

The pages that are linked between the two comments come below this page, in this order, under the heading.
"""

from __future__ import annotations

import re
from typing import Any

CONTENTS = re.compile(r"<!-- contents -->\n(.*?)<!-- end of contents -->\n?", re.DOTALL)
PAGE = re.compile(r"\]\(([\w./-]+)\.md\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def toctree(text: str, contents: re.Match[str]) -> str:
    heading = HEADING.findall(text[: contents.start()])[-1]
    pages = "\n".join(dict.fromkeys(f"/{page}" if page.startswith("/") else page for page in PAGE.findall(contents[1])))
    return f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def with_toctrees(text: str) -> str:
    """A page with a hidden toctree below each list of contents."""
    return CONTENTS.sub(lambda contents: f"{contents[1]}\n{toctree(text, contents)}", text)


def read(app: Any, name: str, source: list[str]) -> None:
    source[0] = with_toctrees(source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
