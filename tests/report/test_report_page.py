"""The page: self-contained, escaped, whole or not written, and its numbers are the run's numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.report import write_report
from fedvote.report.headline import headlines, smaller, traffic
from fedvote.report.left_out import spans
from fedvote.report.number_text import decimal, duration, size
from fedvote.report.run_page import read_runs

MakeRun = Callable[..., Path]
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


def report(*folders: Path) -> str:
    return write_report(folders, folders[0] / "report.html").read_text(encoding="utf-8")


def chart_blocks(page: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r'<script type="application/json">(.*?)</script>', page)]


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


def test_the_headline_numbers_are_the_last_rounds_the_sums_and_the_means(make_run: MakeRun) -> None:
    folder = make_run(rounds=0, clients=4)
    line: dict[str, Any] = {
        "accuracy_calibrated": 0.89,
        "accuracy_float": 0.95,
        "uplink_bits_per_weight": 0.3,
        "downlink_bits_per_weight": 0.5,
        "uplink_bytes": 750_000,
        "downlink_bytes": 1_250_000,
        "clients": [0, 1, 2, 3],
        "seconds": 50,
    }
    rows = [line | {"round": index, "accuracy": index / 10} for index in (8, 9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tiles = headlines(read_runs([folder])[0])
    assert {item.label: item.value.replace("\u202f", " ") for item in tiles} == {
        "Accuracy of the deployed network": "90.00 %",
        "Traffic, up and down": "4.00 MB",
        "Clients left out": "nobody",
        "Size on a device": "\N{EN DASH}",
        "Bits per weight": "0.800",
        "Time": "1 min 40 s",
    }
    notes = [item.note.replace("\u202f", " ") for item in tiles]
    assert notes[0] == "one input at a time: 89.00 %\nfloat network: 95.00 %"
    assert notes[1].startswith("float32 takes 80.0 times as much: 320 MB\n1.50 MB up, 2.50 MB down")
    assert notes[2] == "every client counted in all of its rounds"


def test_numbers_are_written_as_people_read_them() -> None:
    assert [decimal(value) for value in (None, 0, 0.00771, 1.0, 32.0, 1234.5)] == [
        "\N{EN DASH}", "0", "0.00771", "1.00", "32.0", "1,234",
    ]  # fmt: skip
    assert decimal(float("nan")) == "nan"
    assert size(2_500_000).replace("\u202f", " ") == "2.50 MB"
    assert size(678).replace("\u202f", " ") == "0.678 kB"
    assert [duration(value).replace("\u202f", " ") for value in (8.21, 119.6, 7500)] == [
        "8.21 s",
        "2 min 0 s",
        "2 h 5 min",
    ]
    assert spans([1, 2, 3, 5, 7, 8]) == "1\N{EN DASH}3, 5, 7\N{EN DASH}8"


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


def test_runs_far_apart_in_bytes_share_a_logarithmic_axis_and_others_do_not(make_run: MakeRun) -> None:
    votes = make_run("votes")
    assert "logarithmic" in report(votes, make_run("floats", nbytes=256_000))
    assert "logarithmic" not in report(votes, make_run("twice", nbytes=16_000))


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


def test_an_unfinished_run_says_how_far_it_is(make_run: MakeRun) -> None:
    folder = make_run(rounds=10)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:4]))
    assert "for 4 of 10 rounds by" in report(folder)


def test_the_facts_count_the_clients_of_a_round_even_where_the_configuration_says_all(make_run: MakeRun) -> None:
    folder = make_run(clients=4)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("cohort = 4", "cohort = 0"))
    assert "<dt>clients per round</dt><dd>4</dd>" in report(folder)
    (folder / "metrics.jsonl").write_text("")
    assert "<dt>clients per round</dt><dd>all</dd>" in report(folder)


def test_the_facts_name_the_attack_and_the_rule(make_run: MakeRun) -> None:
    folder = make_run(weights=True, hostile=2)
    rules = '[method.reputation]\nname = "camps"\n[attack]\nname = "inverse"\n'
    config = folder / "config.toml"
    config.write_text(config.read_text() + rules)
    assert "<dt>attack</dt><dd>inverse by 2 clients</dd>" in report(folder)
    assert "<dt>rule</dt><dd>camps</dd>" in report(folder)
    assert "<dt>attack</dt>" not in report(make_run()) and "<dt>rule</dt>" not in report(make_run())


def test_float32_is_as_small_as_float32(make_run: MakeRun) -> None:
    folder = make_run(rounds=0, clients=2)
    rows = [  # the seed makes the first broadcast
        {
            "round": index, "uplink_bytes": 8000, "downlink_bytes": 0 if index == 1 else 8000,
            "uplink_bits_per_weight": 32, "downlink_bits_per_weight": 0 if index == 1 else 32,
        }
        for index in (1, 2)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = read_runs([folder])
    assert smaller(run).value == "1.00\N{MULTIPLICATION SIGN}"
    assert traffic(run).note.startswith("as much as float32\n")


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


def edited(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """The folder with other records."""
    file = folder / "metrics.jsonl"
    records = [change(json.loads(line)) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_a_run_that_ends_without_a_number_does_not_show_an_earlier_one_as_its_answer(make_run: MakeRun) -> None:
    folder = make_run(rounds=3, accuracy=0.75)
    (run,) = read_runs([edited(folder, lambda record: record | ({"accuracy": None} if record["round"] == 3 else {}))])
    answer = headlines(run)[0]
    assert answer.value == "\N{EN DASH}"
    assert answer.note.startswith("not a finite number at the end; the last one before: 75.00")


def test_a_round_that_is_not_evaluated_does_not_hide_the_last_one_that_was(make_run: MakeRun) -> None:
    folder = edited(make_run(rounds=3, accuracy=0.75), lambda record: record if record["round"] < 3 else {"round": 3})
    assert headlines(read_runs([folder])[0])[0].number == 0.75


def test_bytes_and_seconds_that_nobody_counted_are_not_zero(make_run: MakeRun) -> None:
    folder = edited(make_run(rounds=2), lambda record: {"round": record["round"], "accuracy": 0.5})
    told = {item.label: item for item in headlines(read_runs([folder])[0])}
    assert told["Traffic, up and down"].value == told["Time"].value == "\N{EN DASH}"


def test_hostile_clients_whose_attack_is_not_known_are_named_in_words(make_run: MakeRun) -> None:
    page = report(make_run(hostile=2))
    assert "an attack that is not known by 2 clients" in page and "None" not in page


def test_one_client_and_one_round_are_written_in_the_singular(make_run: MakeRun) -> None:
    folder = make_run(clients=1, rounds=1)
    assert "One round as a table" in report(folder)
    assert ": one client, 10 clients, 1, 10 rounds." in report(folder, make_run("other"))


@pytest.mark.parametrize("value", [5e-324, -5e-324, 1e308, -1e308])
def test_the_smallest_and_the_largest_numbers_make_a_page(make_run: MakeRun, value: float) -> None:
    judged = {"metric": {"name": "mse", "percent": False, "higher_is_better": False}, "mse": value}
    assert "Mse by round" in report(make_run(**judged))
    assert "mse" in report(make_run(**judged), make_run("other", **judged | {"mse": -value}))
