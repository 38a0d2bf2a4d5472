"""Pages about stored results: whatever is in the file is drawn and listed, and nothing else."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
STORED = {
    name: json.loads((ROOT / "results" / f"{name}.json").read_text())
    for name in ("methods-cifar10-silo", "byzantine-digits")
}
ENVIRONMENT = {"device": "cpu", "torch": "2"}
Runs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def figures() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("figures")


def run(
    *accuracy: float | None, hostile: int = 5, share: float = 0.25, kept: int = 6, rule: tuple[str, ...] = ()
) -> dict[str, Any]:
    many = len(accuracy)
    settings = [f"federation.hostile={hostile}", *rule]
    return {
        "settings": settings,
        "accuracy": list(accuracy),
        "hostile_share": [share] * many,
        "honest_kept": [kept] * many,
    }


def byzantine(figures: Any, runs: Runs) -> Any:
    return figures.page_of({"preset": "quickstart", "environment": ENVIRONMENT, "runs": runs})


def method(*accuracy: float | None, nbytes: int = 11_000_000, rates: tuple[float, ...] = (0.1, 0.3)) -> dict[str, Any]:
    """Of the preset quickstart, with its 11 clients; the first rate is the best."""
    rounds = [
        {"round": index, "accuracy": value, "uplink_bytes": nbytes, "downlink_bytes": 2 * nbytes}
        for index, value in enumerate(accuracy, start=1)
    ]
    found = {str(rate): 0.5 - rate for rate in rates}
    return {
        "settings": ["method=some", f"method.lr={rates[0]}", "rounds=9"],
        "search": {"key": "method.lr", "rounds": 4, "accuracy": found},
        "rounds": rounds,
    }


def methods(figures: Any, **found: dict[str, Any]) -> Any:
    return figures.page_of({"preset": "quickstart", "environment": ENVIRONMENT, "methods": found})


def points(chart: Any, name: str) -> list[tuple[float, float]]:
    return next([(p.x, round(p.y, 9)) for p in each.points] for each in chart.series if each.name == name)


def chart_of(page: Any, name: str) -> Any:
    return next(chart for chart in page.charts if chart.name == name)


def legends(html: str) -> list[list[str]]:
    groups = re.findall(r'<div class="legend".*?</div>', html)
    return [re.findall(r"</svg>([^<]+)</button>", group) for group in groups]


def rows(html: str) -> list[list[str]]:
    """The cells of every row of every table, without markup; what is small after a bar."""
    found = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", html)
    cells = [re.findall(r"(?:<td>|^)(.*?)(?=</t[dh]>)", row) for row in found]
    return [[re.sub("<.*?>", "", cell.replace("<small>", "|")).replace("\u202f", " ") for cell in row] for row in cells]


@pytest.mark.parametrize("name", STORED)
def test_every_method_or_rule_of_a_stored_file_is_in_the_legend_and_in_both_tables(figures: Any, name: str) -> None:
    data = STORED[name]
    expected = set(data["methods"]) if "methods" in data else {key.split("/")[0] for key in data["runs"]}
    html = figures.page_of(data).html()
    assert set(legends(html)[0]) == expected
    headings = [row[0] for row in rows(html)]
    assert set(headings) == expected and all(headings.count(each) >= 2 for each in expected)


def test_every_attack_and_number_of_hostile_clients_has_a_chart_with_the_oracle_in_it(figures: Any) -> None:
    runs = STORED["byzantine-digits"]["runs"]
    page = figures.page_of(STORED["byzantine-digits"])
    tried = {tuple(key.split("/")[1:3]) for key in runs if not key.startswith("oracle")}
    charts = [chart for chart in page.charts if chart.x_name == "round"]
    assert {chart.name for chart in charts} == {f"{attack}-{hostile}" for attack, hostile in tried}
    assert all(chart.series[-1].name == "oracle" and chart.series[-1].dash == "dashed" for chart in charts)
    assert all(points(chart, "oracle") for chart in charts if not chart.name.endswith("-0"))
    assert "Figure 6 (a)" in page.html() and "Figure 7" in page.html()


def test_lines_are_means_over_seeds_round_by_round(figures: Any) -> None:
    page = byzantine(figures, {"camps/inverse/5/0": run(0.2, 0.6), "camps/inverse/5/1": run(0.4, 0.9)})
    assert points(page.charts[0], "camps") == [(1, 30), (2, 75)]


def test_a_round_that_was_not_measured_has_no_point_and_the_last_measured_one_is_the_result(figures: Any) -> None:
    runs = {"camps/inverse/5/0": run(None, 0.5, None, 0.75, None), "camps/inverse/5/1": run(0.1, 0.7, 0.1, 0.25, None)}
    page = byzantine(figures, runs)
    assert points(page.charts[0], "camps") == [(2, 60), (4, 50)]
    assert rows(page.html())[0] == ["camps", "50.00 %|2 seeds"]
    page = methods(figures, some=method(None, 0.5, None), other=method(0.1, 0.2, 0.4))
    assert [points(chart, "some") for chart in page.charts] == [[(2, 50)], [(2, 50)]]
    assert "50.00 %" in rows(page.html())[0]


def test_a_rule_is_compared_with_the_oracle_of_as_many_hostile_clients(figures: Any) -> None:
    runs = {
        "camps/inverse/5/0": run(0.90), "cut/inverse/5/0": run(0.96), "oracle/none/5/0": run(0.95, share=0),
        "oracle/none/5/1": run(0.93, share=0), "camps/inverse/3/0": run(0.80), "oracle/none/3/0": run(0.97, share=0),
    }  # fmt: skip
    many, few = rows(byzantine(figures, runs).html())[:3], rows(byzantine(figures, runs).html())[3:5]
    assert few == [["camps", "80.00 %|17.00 below \N{MIDDLE DOT} 1 seed"], ["oracle", "97.00 %|1 seed"]]
    assert many == [
        ["camps", "90.00 %|4.00 below \N{MIDDLE DOT} 1 seed"],
        ["cut", "96.00 %|2.00 above \N{MIDDLE DOT} 1 seed"],
        ["oracle", "94.00 %|2 seeds"],
    ]


def test_rules_that_weigh_nobody_have_no_votes_rather_than_none_for_the_hostile(figures: Any) -> None:
    runs = {
        "camps/inverse/5/0": run(0.9, share=0.0, kept=6), "camps/inverse/5/1": run(0.9, share=0.1, kept=5),
        "median/inverse/5/0": run(0.8, share=0.0, kept=0, rule=("method=fedavg",)),
    }  # fmt: skip
    assert rows(byzantine(figures, runs).html())[2:] == [["camps", "5.00 %|5.5 of 6 honest"], ["median", "\N{EN DASH}"]]


def test_accuracy_is_drawn_by_number_of_hostile_clients_where_there_are_several_and_nobody_counts_for_all(
    figures: Any,
) -> None:
    runs = {
        "camps/none/0/0": run(0.95, hostile=0), "camps/inverse/5/0": run(0.9), "camps/random/5/0": run(0.8),
        "oracle/none/5/0": run(0.9),
    }  # fmt: skip
    page = byzantine(figures, runs)
    assert points(chart_of(page, "inverse-by-number"), "camps") == [(0, 95), (5, 90)]
    assert points(chart_of(page, "random-by-number"), "camps") == [(0, 95), (5, 80)]
    assert points(chart_of(page, "inverse-by-number"), "oracle") == [(5, 90)]
    page = byzantine(figures, {"camps/inverse/5/0": run(0.9), "camps/random/3/0": run(0.8)})
    assert [chart.name for chart in page.charts] == ["inverse-5", "random-3"]


def test_charts_side_by_side_have_one_scale(figures: Any) -> None:
    runs = {"camps/inverse/5/0": run(0.9, 0.95), "camps/random/5/0": run(0.1, 0.2, 0.3)}
    first, second = byzantine(figures, runs).charts
    assert (first.x, first.y) == (second.x, second.y)


def test_uplink_is_that_of_one_client_and_its_decades_are_evenly_spaced(figures: Any) -> None:
    page = methods(figures, small=method(0.5, 0.6), large=method(0.5, 0.6, nbytes=11_000_000_000))
    chart = chart_of(page, "accuracy-by-uplink")
    assert [x for x, _ in points(chart, "small")] == [1, 2] and [x for x, _ in points(chart, "large")] == [1000, 2000]
    left = [float(each) for each in re.findall(r'<span style="left: ([\d.]+)%', page.html().split("logarithmic")[0])]
    decades = left[-len(chart.x.ticks) :]
    assert chart.x.ticks == (1, 10, 100, 1000)
    first, *others = (b - a for a, b in pairwise(decades))
    assert others == pytest.approx([first] * 2, abs=0.02)


def test_the_table_has_the_rate_taken_and_bytes_and_bits_of_one_client(figures: Any) -> None:
    weights = 16 * 9 + 32 * 16 * 9 + 128 * 64  # digits-cnn, without its last layer
    page = methods(figures, some=method(0.5, 0.75, nbytes=11 * weights // 8, rates=(0.3, 0.1, 1.0)))
    taken, searched = rows(page.html())
    mb = f"{2 * (weights // 8) / 1e6:.5f}"
    assert taken[:4] == ["some", "0.3", "2", "75.00 %"] and taken[4].startswith(mb[:6]) and taken[6] == "1.00"
    assert searched == ["some", "method.lr", "4", "40.00 %", "20.00 %", "-50.00 %"]
    assert "<strong>20.00\u202f%</strong>" in page.html()


def test_the_command_writes_the_page_and_a_drawing_for_every_chart(
    figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, out = str(ROOT / "results" / "byzantine-digits.json"), tmp_path / "new" / "page.html"
    monkeypatch.setattr("sys.argv", ["figures.py", stored, "--out", str(out), "--svg", str(tmp_path / "svg")])
    figures.main()
    assert "https://" not in out.read_text() and "http://" not in out.read_text()
    drawings = {path.stem: path.read_text() for path in (tmp_path / "svg").iterdir()}
    page = figures.page_of(STORED["byzantine-digits"])
    assert set(drawings) == {chart.name for chart in page.charts}
    for chart in page.charts:
        svg = ElementTree.fromstring(drawings[chart.name])
        words = {each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")}
        assert {chart.title, chart.x_name, *(each.name for each in chart.series if each.points)} <= words


def test_a_file_of_another_kind_is_refused(
    figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text('{"rows": []}')
    argv = ["figures.py", str(tmp_path / "other.json"), "--out", str(tmp_path / "page.html")]
    monkeypatch.setattr("sys.argv", argv)
    with pytest.raises(SystemExit):
        figures.main()
    assert "it has rows, expected the methods of methods.py" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
