"""The page: self-contained, escaped, whole or not written, and its numbers are the run's numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.report import write_report
from tests.report.pages import MakeRun, chart_blocks, report

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Balance(HTMLParser):
    """Fails where a tag is closed that is not the one open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for key, value in attrs if key in ("src", "href", "srcset", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_asks_the_network_for_nothing(make_run: MakeRun) -> None:
    page = report(make_run(weights=True, hostile=3), make_run("other"))
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert parser.loads == ["data:,"]
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


def test_markup_in_a_name_is_shown_and_not_run(make_run: MakeRun) -> None:
    evil = "</script><script>alert(1)</script>"
    folder = make_run("a<b>&", method=evil, refused={"1": evil}, weights=True)
    (folder / "clients.json").write_text(json.dumps({"classes": [evil], "counts": [[1]] * 10, "hostile": []}))
    page = report(folder, make_run("other"))
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 3
    assert "<b>&" not in page and "a&lt;b&gt;&amp;" in page


def test_the_points_of_the_traffic_chart_are_the_sums_of_the_bytes_in_both_directions(make_run: MakeRun) -> None:
    folder = make_run(rounds=3, clients=10, nbytes=125_000)
    by_traffic = chart_blocks(report(folder))[1]
    deployed = next(series for series in by_traffic if series["name"] == "deployed")
    assert [point[2] for point in deployed["points"]] == [
        "round 1 \N{MIDDLE DOT} 6.25 MB", "round 2 \N{MIDDLE DOT} 12.5 MB", "round 3 \N{MIDDLE DOT} 18.8 MB",
    ]  # fmt: skip
    assert [point[0] for point in deployed["points"]] == pytest.approx([1 / 3, 2 / 3, 1], abs=1e-4)


def test_a_run_without_a_finished_round_says_so(make_run: MakeRun) -> None:
    page = report(make_run(rounds=0))
    assert "No round is finished yet" in page
    assert "Configuration" in page and "Data of each client" in page
    assert "Accuracy by round" not in page


def test_a_comparison_with_a_run_that_has_no_round_yet_shows_the_other(make_run: MakeRun) -> None:
    page = report(make_run(rounds=0), make_run("other"))
    assert [len(series["points"]) for series in chart_blocks(page)[0]] == [0, 10] * 3


@pytest.mark.parametrize("extra", [{"accuracy": None}, {"accuracy": float("nan")}, {"zeta": 1}])
def test_metrics_that_are_missing_or_not_finite_or_unknown_are_tolerated(
    make_run: MakeRun, extra: dict[str, Any]
) -> None:
    assert "Accuracy by round" in report(make_run(**extra))


def test_rounds_with_nothing_but_their_number_make_a_page(make_run: MakeRun) -> None:
    folder = make_run(rounds=0)
    (folder / "metrics.jsonl").write_text('{"round": 1}\n')
    assert "No round has a measured accuracy yet" in report(folder)


def test_missing_clients_are_said_to_be_missing(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "clients.json").unlink()
    assert "no clients.json" in report(folder)


def test_runs_far_apart_in_bytes_share_a_logarithmic_axis_and_others_do_not(make_run: MakeRun) -> None:
    votes = make_run("votes")
    assert "logarithmic" in report(votes, make_run("floats", nbytes=256_000))
    assert "logarithmic" not in report(votes, make_run("twice", nbytes=16_000))


def test_the_same_runs_make_the_same_bytes(make_run: MakeRun) -> None:
    folder = make_run(weights=True, hostile=2)
    assert report(folder) == report(folder)


def test_a_failed_report_leaves_the_earlier_one_and_no_rubbish(make_run: MakeRun, tmp_path: Path) -> None:
    out = tmp_path / "out" / "report.html"
    write_report([make_run()], out)
    before = out.read_bytes()
    with pytest.raises(ConfigError):
        write_report([tmp_path / "nowhere"], out)
    assert out.read_bytes() == before
    assert list(out.parent.iterdir()) == [out]


def test_a_folder_as_output_is_refused(make_run: MakeRun) -> None:
    folder = make_run()
    with pytest.raises(ConfigError, match="is a folder"):
        write_report([folder], folder)


@pytest.mark.parametrize("value", [5e-324, -5e-324, 1e308, -1e308])
def test_the_smallest_and_the_largest_numbers_make_a_page(make_run: MakeRun, value: float) -> None:
    judged = {"metric": {"name": "mse", "percent": False, "higher_is_better": False}, "mse": value}
    assert "Mse by round" in report(make_run(**judged))
    assert "mse" in report(make_run(**judged), make_run("other", **judged | {"mse": -value}))
