"""Pages lead to files that are there; the README is a front door; the wire format is the one that is described."""

from __future__ import annotations

import re
from pathlib import Path

from fedvote.codecs.frame import VERSION

README = Path(__file__).parent.parent / "README.md"
FOLDERS = (".github", "docs", "examples", "peers", "results")  # that have pages


def test_every_file_that_a_page_links_to_is_there() -> None:
    root = README.parent
    pages = [*root.glob("*.md"), *(page for folder in FOLDERS for page in (root / folder).rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\((?!https:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_it_is_a_front_door_that_names_what_the_rule_does_not_stop() -> None:
    text = README.read_text()
    assert len(text.splitlines()) < 150
    assert "not safe against attackers who know it" in text and "backdoor" in text


def test_the_wire_format_that_is_described_is_the_one_that_is_written() -> None:
    text = (README.parent / "docs" / "wire-format.md").read_text()
    assert text.startswith(f"# The wire format, version {VERSION}\n") and f"| version | {VERSION} |" in text
