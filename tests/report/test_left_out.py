"""Who did not count, and why, is said at the top and in a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fedvote.report.headline import clients_left_out
from fedvote.report.left_out import event_rows
from fedvote.report.read_run import Run, read_runs
from tests.report.pages import MakeRun

CAMPS = '[method.reputation]\nname = "camps"\n'


def run_with(make_run: MakeRun, hostile: list[int], *rounds: Mapping[str, Any], rule: str = CAMPS) -> Run:
    """A run of four clients with these events in its rounds."""
    folder = make_run(clients=4, rounds=0)
    records = [{"round": index, "clients": [0, 1, 2, 3], **each} for index, each in enumerate(rounds, start=1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "clients.json").write_text(json.dumps({"classes": ["a"], "counts": [[1]] * 4, "hostile": hostile}))
    (folder / "config.toml").write_text((folder / "config.toml").read_text() + rule)
    return read_runs([folder])[0]


def weights(*values: float) -> dict[str, Any]:
    return {"vote_weight": {str(client): value for client, value in enumerate(values)}}


def test_clients_without_weight_are_left_out_by_the_rule(make_run: MakeRun) -> None:
    run = run_with(make_run, [1, 3], weights(0.5, 0, 0.5, 0), weights(0.4, 0.2, 0.4, 0))
    told = clients_left_out(run)
    assert told.value == "2 of 4"
    assert told.note == "by the rule camps: 1, 3\n1 of them in all of their rounds\n2 of 2 hostile clients, 0 honest"
    (first, second) = event_rows(run)
    assert first[:2] == ["no weight", "1 (hostile)"] and first[3:] == ["1", "1"]
    assert second[1] == "3 (hostile)" and second[3:] == ["2", "1\N{EN DASH}2"]
    assert "leaves out ballots that look forged or copied" in first[2]


def test_the_reason_of_a_round_stands_in_place_of_the_rules_description(make_run: MakeRun) -> None:
    forged = {"left_out": {"1": "the ballot looks forged, copied or coordinated"}}
    run = run_with(make_run, [1], weights(0.5, 0, 0.25, 0.25) | forged, weights(0.5, 0, 0.25, 0.25) | forged)
    (row,) = event_rows(run)
    assert row[2:] == ["the ballot looks forged, copied or coordinated", "2", "1\N{EN DASH}2"]


def test_clients_that_counted_in_some_rounds_are_told_from_clients_that_never_did(make_run: MakeRun) -> None:
    run = run_with(make_run, [], weights(0.5, 0, 0.25, 0.25), weights(0, 0.5, 0.25, 0.25))
    assert clients_left_out(run).note == "by the rule camps: 0, 1\neach of them counted in some rounds"


def test_honest_clients_that_are_left_out_are_counted_as_such(make_run: MakeRun) -> None:
    run = run_with(make_run, [3], weights(0, 0.5, 0.25, 0.25))
    assert (
        clients_left_out(run).note == "by the rule camps: 0\nin all of their rounds\n0 of 1 hostile clients, 1 honest"
    )


def test_a_refusal_and_an_absence_leave_out_and_a_late_or_second_message_does_not(make_run: MakeRun) -> None:
    run = run_with(make_run, [], {"refused": {"2": "too short"}, "absent": [0], "late": {"1": "x"}, "second": {"3": 1}})
    told = clients_left_out(run)
    assert (told.value, told.note) == ("2 of 4", "refused: 2\nabsent: 0\nin all of their rounds")


def test_nobody_left_out_is_said(make_run: MakeRun) -> None:
    told = clients_left_out(run_with(make_run, [], weights(0.25, 0.25, 0.25, 0.25)))
    assert (told.value, told.note) == ("nobody", "every client counted in all of its rounds")


def test_clients_with_the_same_reason_and_rounds_share_a_row(make_run: MakeRun) -> None:
    run = run_with(make_run, [1], {"absent": [0, 1, 2]}, {"absent": [0, 1, 2]}, rule="")
    assert [row[:2] for row in event_rows(run)] == [["absent", "0, 2"], ["absent", "1 (hostile)"]]
