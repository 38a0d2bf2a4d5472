"""Many lines on one chart: seven colours, and patterns of dashes for lines of the same colour."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations
from math import dist

import pytest

from fedvote.report.line_look import COLOURS, PATTERNS, colour_style, patterned, swatched

STYLE, DARK = (files("fedvote.report").joinpath(name).read_text(encoding="utf-8") for name in ("chart.css", "page.css"))
KINDS = ("solid", "dashed", "dotted")


def looks(lines: int) -> set[tuple[str, str]]:
    return {(colour_style(index), patterned("solid", index)) for index in range(lines)}


def lab(colour: str) -> tuple[float, ...]:
    """A colour in OKLab (Ottosson, 2020), in which equal distances look equally large."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    medium = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def test_no_two_of_28_lines_share_both_colour_and_dashes() -> None:
    assert len(looks(28)) == 28 == COLOURS * len(PATTERNS)


def test_the_first_seven_lines_have_no_pattern() -> None:
    assert [patterned("dashed", index) for index in range(COLOURS)] == ["dashed"] * COLOURS


@pytest.mark.parametrize("style", [STYLE, DARK], ids=["light", "dark"])
def test_colours_can_be_told_apart_on_light_and_on_dark_pages(style: str) -> None:
    colours = dict(re.findall(r"--(c\d): (#[0-9a-f]{6});", style))
    assert len(colours) == COLOURS
    assert min(dist(lab(one), lab(other)) for one, other in combinations(colours.values(), 2)) > 0.1


def test_a_sample_in_a_table_has_the_pattern_of_its_line() -> None:
    samples = {swatched("a run", index, patterned("dashed", index)) for index in range(28)}
    assert len(samples) == 28
    assert set(re.findall(r"^\.swatch\.(\w+) ", DARK, flags=re.MULTILINE)) == set(PATTERNS[1:])


def test_every_pattern_of_every_kind_of_line_has_dashes_of_its_own() -> None:
    rules = dict(re.findall(r"^([\w.]+) \{ stroke-dasharray: ([\d. ]+);", STYLE, flags=re.MULTILINE))
    patterns = [f".{pattern}.{kind}" for pattern in PATTERNS[1:] for kind in KINDS]
    assert {".dashed", ".dotted", *patterns} == rules.keys()
    assert len(set(rules.values())) == len(rules)
