"""The built site, as `make docs` leaves it: whole, without markers, and asking no other host for anything."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.wait import WebDriverWait

import fedvote
from fedvote.runs.keys import settings
from tests.browser import chromium, needs_browser, set_width

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
sys.path.insert(0, str(ROOT / "docs"))
docstrings, markers, toctrees = (
    importlib.import_module(f"sphinx_extensions.{name}") for name in ("docstrings", "markers", "toctrees")
)
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


def test_comments_go_and_numbers_lose_their_expressions_but_code_stays() -> None:
    page = "<!-- given: a -->\n[1.5 s](results/x.json \"min(a['b'])\"), `<!-- shown -->`\n```\n<!-- shown -->\n```\n"
    assert markers.without_markers(page) == "[1.5 s](results/x.json), `<!-- shown -->`\n```\n<!-- shown -->\n```\n"


def test_a_list_of_links_becomes_contents_under_its_heading() -> None:
    page = "## Parts\n\n<!-- contents -->\n- [One](a.md), [Two](../b/c.md), [again](a.md)\n<!-- end of contents -->\n"
    made = toctrees.with_toctrees(page)
    assert ":caption: Parts\n\nOne <a>\nTwo <../b/c>\n```" in made and "[again](a.md)" in made


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("two `Dataset`s of *any* kind", r"two `Dataset`\ s of \*any\* kind"),
        ("`a*b` | loss_ and lr_schedule", r"`a*b` \| loss\_ and lr_schedule"),
    ],
)
def test_a_docstring_is_read_as_it_is_written(line: str, text: str) -> None:
    assert docstrings.literal(line) == text


def test_parameters_stand_in_the_order_of_the_signature_below_the_text() -> None:
    lines = ["Do it.", "", "b, c: twice", "  and more", "", "Note: not a parameter."]
    fields = [":param a: ", ":param b: twice and more", ":param c: twice and more"]
    assert docstrings.as_fields(lines, ["a", "b", "c"]) == ["Do it.", "", "", "Note: not a parameter.", "", *fields]


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


def test_the_reference_has_every_public_name_and_every_key() -> None:
    assert found("docs/reference/api.html").ids >= {f"fedvote.{name}" for name in fedvote.__all__}
    text = (SITE / "docs" / "reference" / "configuration.html").read_text(encoding="utf-8")
    assert all(f">{setting.key}<" in re.sub(r"</?span[^>]*>", "", text) for setting in settings())


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), performance="ALL") as driver:
        yield driver


@needs_browser
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("page", ["index", "docs/method", "docs/reference/api", "docs/results/accuracy"])
def test_a_browser_shows_a_page_without_errors_and_asks_nobody_else(page: str, width: int, browser: Any) -> None:
    set_width(browser, width)
    browser.get((SITE / f"{page}.html").as_uri())
    WebDriverWait(browser, 20).until(lambda shown: shown.find_elements("css selector", "h1"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked and all(address.startswith(("file:", "data:", "chrome:")) for address in asked), asked


@needs_browser
def test_the_search_finds_a_key_without_a_server(browser: Any) -> None:
    browser.get((SITE / "search.html").as_uri() + "?q=level_rounding")
    results = "//*[@id='search-results']//a[contains(., 'Configuration keys')]"  # they come one after another
    WebDriverWait(browser, 20).until(lambda page: page.find_elements("xpath", results))
