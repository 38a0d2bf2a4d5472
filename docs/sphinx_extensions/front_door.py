"""Leads from the site's root to its first page, which is in the folder docs/ as in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={first}">
<title>fedvote</title>
<a href="{first}">fedvote</a>
"""


def write(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        page = PAGE.format(first=f"{app.config.root_doc}.html")
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
