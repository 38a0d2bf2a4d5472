"""Tooltips and legend agree with the lines that are drawn: in the page as it is made, and after its script has run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fedvote.report import write_report
from fedvote.report.axis import axis_from_zero, percent_axis
from fedvote.report.chart import Chart, line, panels
from fedvote.report.page import shell
from tests.report.pages import MakeRun

Node = Any  # [name, attributes, children], or a text
NODE = shutil.which("node")
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Tree(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[Node] = [["document", {}, []]]
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node: Node = [tag, {key: value or "" for key, value in attrs}, []]
        self.open[-1][2].append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1][2].append(data)


def tree(page: str) -> Node:
    return Tree(page).open[0]


def find(node: Node, test: Callable[[str, dict[str, str]], bool]) -> list[Node]:
    if isinstance(node, str):
        return []
    name, attributes, children = node
    return [*([node] if test(name, attributes) else []), *(each for child in children for each in find(child, test))]


def text(node: Node) -> str:
    return node if isinstance(node, str) else "".join(map(text, node[2]))


def of_class(node: Node, name: str) -> list[Node]:
    return find(node, lambda _, attributes: name in attributes.get("class", "").split())


def is_line_chart(name: str, attributes: dict[str, str]) -> bool:
    return name == "figure" and attributes.get("data-chart") == "lines"


def figures(page: str) -> list[Node]:
    return find(tree(page), is_line_chart)


def tooltip_data(figure: Node) -> list[dict[str, Any]]:
    (block,) = find(figure, lambda name, _: name == "script")
    data: list[dict[str, Any]] = json.loads(text(block))
    return data


def drawn(series: Node) -> list[tuple[float, float]]:
    """Where a line goes, as shares of the plot: from the left, and from the top."""
    path = series[2][0][1].get("d", "")
    return [(float(x) / 1000, float(y) / 1000) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def crossing() -> Chart:
    """Two lines that cross: `up` from 10 to 90 percent, `down` from 90 to 20."""
    names = ["up", "down"]
    lines = (
        line("up", names, [0, 10], [0.1, 0.9], lambda index: f"up {index}"),
        line("down", names, [2, 8], [0.9, 0.2], lambda index: f"down {index}"),
    )
    return Chart("crossing", "Two lines", lines, axis_from_zero(10), "x", percent_axis([0, 100]))


def pages(make_run: MakeRun) -> list[str]:
    one, other = make_run(), make_run("other", ceiling=0.7)
    reports = [write_report(runs, one / "report.html").read_text(encoding="utf-8") for runs in ([one], [one, other])]
    chart = crossing()
    return [*reports, shell("one", chart.figure()), shell("several", panels([chart, chart]))]


def test_a_tooltip_points_to_where_the_line_is_drawn(make_run: MakeRun) -> None:
    checked = 0
    for page in pages(make_run):
        for figure in figures(page):
            for series, data in zip(of_class(figure, "series"), tooltip_data(figure), strict=True):
                places = [tuple(point[:2]) for point in data["points"]]
                assert places == [pytest.approx(place, abs=2e-4) for place in drawn(series)]
                checked += len(places)
    assert checked > 100


def test_a_tooltip_says_the_value_that_the_axis_has_at_that_height(make_run: MakeRun) -> None:
    for page in pages(make_run):
        for figure in figures(page):
            (labels,) = of_class(figure, "y-labels")
            ticks = [
                (float(re.findall(r"top: ([\d.]+)%", span[1]["style"])[0]) / 100, float(text(span).split("\u202f")[0]))
                for span in labels[2]
            ]
            (low_y, low), (high_y, high) = ticks[0], ticks[-1]
            for data in tooltip_data(figure):
                for _, y, _, value in data["points"]:
                    expected = low + (y - low_y) / (high_y - low_y) * (high - low)
                    assert float(value.split("\u202f")[0]) == pytest.approx(expected, abs=0.02)


def test_every_key_of_a_legend_has_the_token_of_the_lines_that_it_names(make_run: MakeRun) -> None:
    """A key has the name of a line; or, where lines are named by run and kind, with a comma between, one of the two."""
    for page in pages(make_run):
        nodes = find(tree(page), lambda *_: True)
        legends = [(node, child) for node in nodes for child in node[2] if child in of_class(child, "legend")]
        assert legends
        for around, legend in legends:
            lines = [
                (data["name"], series[1]["data-tokens"].split())
                for figure in find(around, is_line_chart)
                for series, data in zip(of_class(figure, "series"), tooltip_data(figure), strict=True)
            ]
            keys = {text(button): button[1]["data-token"] for button in legend[2]}
            for label, token in keys.items():
                named = [name for name, _ in lines if label in ([name] if name in keys else name.split(", ", 1))]
                assert named and named == [name for name, tokens in lines if token in tokens], label


def with_script(page: str, steps: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What the tooltip says and which lines are shown after each step, with the script that the page has."""
    root = tree(page)
    *_, script = [each for each in find(root, lambda name, _: name == "script") if "type" not in each[1]]
    (folder / "page.js").write_text(text(script), encoding="utf-8")
    (folder / "steps.json").write_text(json.dumps({"page": root, "steps": steps}), encoding="utf-8")
    assert NODE is not None
    command = [
        NODE,
        str(Path(__file__).with_name("page_in_node.js")),
        str(folder / "page.js"),
        str(folder / "steps.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


needs_node = pytest.mark.skipif(NODE is None, reason="needs node to run the page's script")


@needs_node
def test_the_pointer_over_a_point_brings_up_that_point(tmp_path: Path) -> None:
    page = shell("crossing", crossing().figure())
    (figure,) = figures(page)
    places = {
        data["points"][index][2]: place
        for series, data in zip(of_class(figure, "series"), tooltip_data(figure), strict=True)
        for index, place in enumerate(drawn(series))
    }
    assert list(places) == ["up 0", "up 1", "down 0", "down 1"]
    told = with_script(page, [{"hover": place} for place in places.values()], tmp_path)
    assert [(each["heading"], each["rows"]) for each in told] == [
        ("up 0", [["up", "10\u202f%"]]),
        ("up 1", [["up", "90\u202f%"]]),
        ("down 0", [["down", "90\u202f%"]]),
        ("down 1", [["down", "20\u202f%"]]),
    ]


@needs_node
def test_a_tooltip_lists_lines_from_the_top_of_the_plot_down(make_run: MakeRun, tmp_path: Path) -> None:
    names = ["low", "high", "middle"]
    lines = [line(name, names, [0, 1], [0.5, y], str) for name, y in zip(names, (0.2, 0.9, 0.6), strict=True)]
    chart = Chart("three", "Three", tuple(lines), axis_from_zero(1), "x", percent_axis([0, 100]))
    (told,) = with_script(shell("three", chart.figure()), [{"hover": [0.95, 0.5]}], tmp_path)
    assert told["rows"] == [["high", "90\u202f%"], ["middle", "60\u202f%"], ["low", "20\u202f%"]]


@needs_node
def test_a_key_hides_its_line_and_what_the_tooltip_says_of_it(tmp_path: Path) -> None:
    page = shell("crossing", crossing().figure())
    up, down = (each.tokens[0] for each in crossing().series)
    at = [0.0, 0.9]  # where `up` begins
    steps: list[dict[str, Any]] = [{"hover": at}, {"click": up, "hover": at}, {"click": down}, {"click": up}]
    told = with_script(page, steps, tmp_path)
    assert [each["shown"] for each in told] == [[True, True], [False, True], [False, False], [True, False]]
    assert told[0]["heading"] == "up 0" and told[1]["heading"] == "down 1"


@needs_node
def test_a_line_of_two_runs_is_shown_while_its_run_and_its_kind_are(make_run: MakeRun, tmp_path: Path) -> None:
    runs = [make_run(), make_run("other")]
    page = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    names = [data["name"] for data in tooltip_data(figures(page)[0])]
    told = with_script(page, [{"click": "run-0"}, {"click": "accuracy_calibrated"}, {"click": "accuracy"}], tmp_path)
    shown = [[name for name, on in zip(names, each["shown"], strict=True) if on] for each in told]
    assert shown == [
        ["other, float", "other, deployed"],  # calibrated ones start hidden
        ["other, float", "other, deployed, calibrated", "other, deployed"],
        ["other, float", "other, deployed, calibrated"],
    ]


@needs_node
def test_a_cell_of_a_map_says_whose_it_is(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(clients=3, classes=2)
    counts = {"classes": ["a", "b"], "counts": [[1, 2], [3, 4], [5, 6]], "hostile": [2]}
    (folder / "clients.json").write_text(json.dumps(counts))
    page = write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")
    kinds = [each[1]["data-chart"] for each in find(tree(page), lambda name, a: name == "figure" and "data-chart" in a)]
    steps = [{"figure": kinds.index("heat"), "hover": place} for place in ([0.1, 0.1], [0.9, 0.5], [0.1, 0.9])]
    told = with_script(page, steps, tmp_path)
    dot = "\N{MIDDLE DOT}"
    assert [(each["heading"], each["rows"][0][0]) for each in told] == [
        (f"client 0 {dot} class a", "1 examples"),
        (f"client 1 {dot} class b", "4 examples"),
        (f"client 2 (hostile) {dot} class a", "5 examples"),
    ]
