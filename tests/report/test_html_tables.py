"""Tables: whoever was left out, settings that differ, and runs side by side."""

from __future__ import annotations

import json
import re

from tests.report.pages import MakeRun, report


def test_vote_weights_and_refusals_are_sections_only_of_runs_that_have_them(make_run: MakeRun) -> None:
    plain = report(make_run())
    assert "Vote weights" not in plain and "Who was left out" not in plain
    page = report(make_run("attacked", weights=True, hostile=4, refused={"3": "too short"}))
    assert "4 hostile of 10 clients" in page
    assert "<td>too short</td><td>10</td><td>1\N{EN DASH}10</td>" in page


def test_whatever_happened_to_votes_is_in_one_table(make_run: MakeRun) -> None:
    folder = make_run("deployed", rounds=3)
    happened = [
        {"absent": [2], "failed": {"4": "it died"}, "late": {"1": "round 1: a ballot"}},
        {"absent": [2], "second": {"3": 2}, "turned_away": ["key:ab"]},
        {"returned": [2]},
    ]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    texts = [json.dumps(line | more) + "\n" for line, more in zip(lines, happened, strict=True)]
    (folder / "metrics.jsonl").write_text("".join(texts))
    rows = re.findall(r'<tr><th scope="row">([a-z ]+)</th>' + "<td>([^<]*)</td>" * 4 + "</tr>", report(folder))
    assert [list(row) for row in rows] == [
        ["no vote", "4", "it died", "1", "1"],
        ["absent", "2", "", "2", "1\N{EN DASH}2"],
        ["late", "1", "round 1: a ballot", "1", "1"],
        ["second vote", "3", "", "1", "2"],
        ["turned away", "key:ab", "", "1", "2"],
        ["came back", "2", "", "1", "3"],
    ]


def test_settings_that_differ_come_first_and_those_that_all_share_are_folded(make_run: MakeRun) -> None:
    page = report(make_run(method="one"), make_run("other", method="two"))
    (section,) = re.findall(r"<h2>Configuration</h2>(.*?)</section>", page, re.DOTALL)
    differ, shared = section.split("<details>")
    row = r'<tr><th scope="row">([\w.]+)</th><td>(\w+)</td>(?:<td>(\w+)</td>)?</tr>'
    assert re.findall(row, differ) == [("name", "one", "two")]
    assert ("clients", "10", "") in re.findall(row, shared) and ("name", "one", "") not in re.findall(row, shared)
    assert "All settings are the same." in report(make_run("a"), make_run("b"))


def test_a_table_of_runs_with_different_metrics_names_none(make_run: MakeRun) -> None:
    metric = {"name": "r2", "higher_is_better": True, "percent": False}
    one, other = make_run("one"), make_run("other", metric=metric, r2=0.5)
    assert "Accuracy of the deployed network</th>" in report(one, make_run("third"))
    mixed = report(one, other)
    assert ">Deployed network</th>" in mixed and "of the deployed network</th>" not in mixed
