"""A chart as a file of its own: well formed, with all its words, and nothing fetched or taken from the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from fedvote.report.axis import axis_from_zero, percent_axis
from fedvote.report.lines import LegendKey, Point, Series
from fedvote.report.svg import ROW, line_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(names: list[str]) -> ElementTree.Element:
    points = (Point(0, 60, ""), Point(10, 100, ""))
    series = [Series(name, index, "solid", (name,), points) for index, name in enumerate(names)]
    keys = [LegendKey(name, name, index, "solid") for index, name in enumerate(names)]
    axes = axis_from_zero(10), percent_axis([60, 100])
    return ElementTree.fromstring(line_svg("a title", series, *axes, "round", lambda value: f"{value:g}", keys))


def words(svg: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in svg.iter(f"{SVG}text")]


def test_title_ticks_axis_and_every_name_are_words_of_the_drawing() -> None:
    assert words(drawn(["one", "a<b> & c"])) == [
        "a title", "60", "70", "80", "90", "100", "0", "2", "4", "6", "8", "10", "round", "one", "a<b> & c",
    ]  # fmt: skip


def test_labels_have_the_separators_of_tables() -> None:
    points = (Point(0, 60, ""), Point(4000, 100, ""))
    axes = axis_from_zero(4000), percent_axis([60, 100])
    chart = line_svg("a title", [Series("one", 0, "solid", ("one",), points)], *axes, "round", str, [])
    assert {"1,000", "4,000"} <= set(words(ElementTree.fromstring(chart)))


def test_labels_stand_where_the_lines_are_drawn() -> None:
    svg = drawn(["one"])
    place, inner = next((g, child) for g in svg.iter(f"{SVG}g") for child in g if child.tag == f"{SVG}svg")
    left, top = map(int, re.findall(r"\d+", place.attrib["transform"]))
    ends = {each.text: (float(each.attrib["x"]), float(each.attrib["y"])) for each in svg.iter(f"{SVG}text")}
    assert (ends["0"][0], ends["10"][0]) == (left, left + int(inner.attrib["width"]))
    assert ends["60"][1] - ends["100"][1] == int(inner.attrib["height"]) and ends["100"][1] == top + 4


def test_all_variables_have_values_of_their_own_and_nothing_is_fetched() -> None:
    text = ElementTree.tostring(drawn(["one", "two"]), encoding="unicode")
    assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))
    assert not re.search(r"url\(|@import|href|prefers-color-scheme", text)


def test_a_long_legend_makes_the_drawing_higher() -> None:
    few, many = drawn(["one"]), drawn([str(index) for index in range(30)])
    assert int(few.attrib["height"]) < 30 * ROW < int(many.attrib["height"])


def test_a_long_name_makes_the_drawing_wider_than_the_name_is_long() -> None:
    name = "FedPAQ, buckets of 512, rounded down as well"
    [label] = [each for each in drawn([name]).iter(f"{SVG}text") if each.text == name]
    width = int(drawn([name]).attrib["width"])
    assert int(drawn(["one"]).attrib["width"]) < width and float(label.attrib["x"]) + 7 * len(name) < width
