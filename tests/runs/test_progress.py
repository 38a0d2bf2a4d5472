"""Round, metric, traffic and time left are seen at 80 columns, and words that clients sent are shown as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fedvote.rounds.snapshot import Snapshot
from fedvote.runs import progress

Way = Callable[..., Iterator[Snapshot]]
WAYS: list[Way] = [progress._live, progress._plain]
RECORD = {
    "round": 1, "uplink_bytes": 10**6, "downlink_bytes": 3 * 10**6, "accuracy": 0.5, "accuracy_float": 0.25,
    "refused": {"3": "client 3: a frame of method '[/x]'"},
}  # fmt: skip


def shown(way: Way, capsys: pytest.CaptureFixture[str], rounds: int, title: str = "", **extra: Any) -> str:
    made = Snapshot(rounds, {}, {}, RECORD | {"round": rounds} | extra)
    assert list(way([made], rounds, 0, (0, 0), title)) == [made]
    return capsys.readouterr().err


@pytest.mark.parametrize("way", WAYS, ids=["live", "plain"])
def test_words_that_look_like_markup_are_words(
    way: Way, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    text = shown(way, capsys, 1, "[b] and [/nothing]")
    assert "[/x]" in text.replace("\n", "") and "[b] and [/nothing]" in text


@pytest.mark.parametrize("way", WAYS, ids=["live", "plain"])
def test_a_line_of_80_columns_has_round_metric_traffic_and_time_left(
    way: Way, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(way, capsys, 1000, uplink_bytes=123456789012, downlink_bytes=1234567890, accuracy=1.0, refused={})
    (line,) = [line.rstrip() for line in text.splitlines() if "up 123.5 GB" in line]
    assert len(line) <= 80 and "1000/1000" in line
    assert "accuracy 100.0%" in line and "up 123.5 GB, down 1.235 GB" in line and line.endswith("left")


def test_a_live_line_of_80_columns_has_the_success_of_a_backdoor_and_all_traffic(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(progress._live, capsys, 1000, accuracy=1.0, backdoor_success=1.0, refused={})
    (line,) = [line.rstrip() for line in text.splitlines() if "1000/1000" in line and "accuracy" in line]
    assert "accuracy 100.0%, backdoor 100.0%  4.000 MB" in line and line.endswith("left") and len(line) <= 80


def test_a_plain_line_has_both_directions_beside_the_success_of_a_backdoor(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(progress._plain, capsys, 1000, accuracy=1.0, backdoor_success=1.0, refused={})
    assert "accuracy 100.0%, backdoor 100.0%  up 1.000 MB, down 3.000 MB" in text


@pytest.mark.parametrize("way", WAYS, ids=["live", "plain"])
def test_a_client_that_the_rule_leaves_out_is_named_once_with_the_reason(
    way: Way, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    out: list[dict[int, str]] = [{0: "forged"}, {0: "forged", 2: "opposed", 3: "opposed"}, {}, {2: "opposed"}]
    record = {name: value for name, value in RECORD.items() if name != "refused"}
    snapshots = [Snapshot(n, {}, {}, record | {"round": n, "left_out": each}) for n, each in enumerate(out, 1)]
    list(way(snapshots, len(out), 0, (0, 0), ""))
    text = capsys.readouterr().err
    assert [line.split("rule: ")[1].rstrip() for line in text.splitlines() if "left out" in line] == [
        "client 0; forged", "clients 2, 3; opposed",
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=["live", "plain"])
def test_clients_without_a_vote_are_named_with_the_reason_once_until_they_are_back(
    way: Way, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    raised = "its code raised (DataError, see the log on the client's machine)"
    out: list[dict[str, Any]] = [
        {"counted": [0], "failed": {1: raised}, "absent": list(range(2, 20)), "turned_away": ["ab12 mallory"]},
        {"counted": [0], "failed": {1: raised}, "absent": list(range(2, 20)), "turned_away": ["ab12 mallory"]},
        {"counted": [0, 1, *range(2, 20)], "turned_away": ["ab12 mallory"]},
        {"counted": [0], "failed": {"1": raised}},
    ]
    record = {name: value for name, value in RECORD.items() if name != "refused"}
    list(way([Snapshot(n, {}, {}, record | {"round": n} | each) for n, each in enumerate(out, 1)], 4, 0, (0, 0), ""))
    lines = [line.rstrip() for line in capsys.readouterr().err.splitlines()]
    news = [line.partition(": ")[2] if way is progress._live else line for line in lines if "accuracy" not in line]
    assert [line for line in news if line] == [
        f"no vote: client 1; {raised}",
        f"not online: clients {', '.join(map(str, range(2, 18)))} and 2 more",
        "turned away, as they have no vote: key ab12 mallory",
        f"no vote: client 1; {raised}",
    ]


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ([[], []], "nobody"),
        ([[], [2]], "client 2"),
        ([[0, 2], [10, 2]], "clients 2, 10; in earlier rounds 1 other client"),
        ([[0, 1, 3], []], "nobody; in earlier rounds 3 clients"),
        ([[], list(range(49))], f"clients {', '.join(map(str, range(16)))} and 33 more"),
    ],
)
def test_the_last_sentence_says_who_is_left_out_now_and_how_many_were_before(
    rounds: list[list[int]], words: str
) -> None:
    records = [{"left_out": {str(client): "forged" for client in out}} if out else {} for out in rounds]
    assert progress.left_out_in_all(records) == f"left out by the rule in the last round: {words}"


def test_another_metric_has_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    metric = {"name": "rmse", "higher_is_better": False, "percent": False}
    assert "rmse    0.5" in shown(progress._plain, capsys, 1, metric=metric, rmse=0.5, rmse_float=0.25)


def test_the_bytes_of_earlier_rounds_count(capsys: pytest.CaptureFixture[str]) -> None:
    list(
        progress.watch([Snapshot(2, {}, {}, RECORD | {"round": 2})], 2, [{"uplink_bytes": 10**6, "downlink_bytes": 0}])
    )
    assert "up 2.000 MB, down 3.000 MB" in capsys.readouterr().err
