"""The numbers at the top of the page are the run's: the last round's, the sums and the means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedvote.report.headline import columns, headlines, smaller, traffic
from fedvote.report.over_seeds import Group
from fedvote.report.read_run import read_runs
from tests.report.pages import MakeRun, report


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


def test_a_row_of_a_comparison_has_both_directions_and_the_success_of_a_backdoor(make_run: MakeRun) -> None:
    same = {"accuracy": 0.75, "uplink_bits_per_weight": 0.25, "downlink_bits_per_weight": 1.5}
    clean, hit = make_run("clean", rounds=2, **same), make_run("hit", rounds=2, backdoor_success=0.5, **same)
    rows = [{item.label: item.value for item in columns(Group("", tuple(read_runs([each]))))} for each in (clean, hit)]
    assert [row["Bits per weight up"] for row in rows] == ["0.250"] * 2
    assert [row["Bits per weight down"] for row in rows] == ["1.50"] * 2
    quality = [row["Accuracy of the deployed network"].replace("\u202f", " ") for row in rows]
    assert quality == ["75.00 %", "75.00 %, backdoor 50.00 %"]


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


def test_runs_side_by_side_share_one_size_of_float32(make_run: MakeRun) -> None:
    """FedVote leaves 25 of 100 weights frozen, signSGD trains all. Each message of 100 floats would take 400 bytes."""
    roles = {"fedvote": ("voted", "frozen float"), "signsgd": ("trained float", "trained float")}
    folders = []
    for method, (first, last) in roles.items():
        sent = 75 if last == "frozen float" else 100
        bits = {f"{way}link_bits_per_weight": 8 * 50 / (2 * sent) for way in ("up", "down")}
        folders.append(make_run(method, rounds=3, clients=2, uplink_bytes=50, downlink_bytes=50, **bits))
        (folders[-1] / "config.toml").write_text(f"[model]\nstart = 'given'\n[method]\nname = '{method}'\n")
        row = {"shape": [1], "bits_up": 1.0, "bits_device": 1.0}
        layers = [{"name": "a", "weights": 75, "role": first} | row, {"name": "b", "weights": 25, "role": last} | row]
        network = {"layers": layers, "total": "", "warnings": []}
        (folders[-1] / "environment.json").write_text(json.dumps({"network": network}))
    runs = read_runs(folders)
    groups = [Group(run.name, (run,)) for run in runs]
    found = [item.number for group in groups for item in columns(group, groups) if item.label == "Smaller than float32"]
    assert found == pytest.approx([16, 16])
    assert [smaller(run).number for run in runs] == pytest.approx([12, 16])  # alone: of the weights that it sends
    assert "of all weights that at least one of the runs with this network sends" in report(*folders)


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
