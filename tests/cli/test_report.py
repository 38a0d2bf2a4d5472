"""`fedvote report`: pages about one run or several."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import SMALL, Command


def test_report_writes_one_page_about_several_runs(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "one").code == 0
    assert fedvote("run", *SMALL, "--set", "method=fedavg", "--out", "two").code == 0
    outcome = fedvote("report", "one", "two", "--out", "page.html")
    assert outcome.code == 0 and outcome.out.strip() == "page.html"
    page = (tmp_path / "page.html").read_text()
    assert "<html" in page and "one" in page and "two" in page
    assert fedvote("report", "two").out.strip() == "two/report.html"


def test_a_comparison_leaves_the_pages_of_runs_alone(fedvote: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fedvote("run", *SMALL, "--out", name)
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("a", "b")]
    assert fedvote("report", "a", "b").out == "compare.html\n" and (tmp_path / "compare.html").is_file()
    assert [(tmp_path / name / "report.html").read_bytes() for name in ("a", "b")] == pages
