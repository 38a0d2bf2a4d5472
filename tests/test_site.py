"""The built site, as `make docs` leaves it: whole, without markers, and asking no other host for anything."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow
SITE = Path(__file__).parent.parent / "build" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_downloads" not in path.parts)
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}


class Found(HTMLParser):
    """The links, ids, loaded files and visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.comments: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and name == "id":
                self.ids.add(value)
            if value and (tag, name) in LOADED:
                self.loaded.append(value)
            if value and (tag, name) == ("a", "href"):
                self.links.append(value)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


@cache
def found(page: str) -> Found:
    return Found((SITE / page).read_text(encoding="utf-8"))


def test_the_site_has_been_built() -> None:
    assert len(PAGES) > 40, "run `make docs`"
    assert (SITE / "index.html").exists() and (SITE / "docs" / "index.html").exists()


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in found(page).links:
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in ("https", "mailto"), link
            continue
        target = (SITE / page).parent / unquote(parts.path) if parts.path else SITE / page
        assert target.exists(), link
        if parts.fragment and target.suffix == ".html" and "_downloads" not in target.parts:
            name = target.resolve().relative_to(SITE.resolve()).as_posix()
            assert unquote(parts.fragment) in found(name).ids, link


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_another_host(page: str) -> None:
    for address in found(page).loaded:
        parts = urlsplit(address)
        assert not parts.netloc and parts.scheme in ("", "data"), address
        assert parts.scheme or ((SITE / page).parent / unquote(parts.path)).exists(), address


def test_no_style_or_script_names_another_host() -> None:
    for file in [*SITE.rglob("*.css"), *SITE.rglob("*.svg")]:
        assert not re.findall(r"(?:url\(|@import|href=)[\"']?https?:", file.read_text(encoding="utf-8")), file
    for file in (SITE / "_static").rglob("*.js"):
        assert not re.findall(r"(?:fetch|import|src ?=)\W+https?:", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("page", PAGES)
def test_no_marker_is_left(page: str) -> None:
    text = (SITE / page).read_text(encoding="utf-8")
    for marker in ("given", "table of", "end", "not run", "commands are not run", "run first", "contents"):
        assert not [comment for comment in found(page).comments if comment.strip().startswith(marker)]
    assert not re.search(r'title="[^"]*(?:last|where|mean|rows|cells)[\[(]', text)
