"""An experiment is run once, seed by seed, goes on where it was, and can be looked at all the while."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fedvote.cli import main
from fedvote.errors import ConfigError
from fedvote.runs.progress import both_ways, traffic_text
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.reproduce import reproduce

SMALL = ("data.name=digits", "model.name=digits-cnn", "federation.clients=3", "local.batch=8", "local.steps=1")
ROWS = ("FedVote binary", "FedAvg")


def asked(**more: Any) -> Asked:
    return Asked(**{"settings": SMALL, "only": ROWS, "rounds": 2, "seeds": 2, "device": "cpu", **more})


def lines(out: Path) -> dict[str, str]:
    return {file.parent.name: file.read_text() for file in sorted((out / "runs").glob("*/metrics.jsonl"))}


def test_it_is_written_down_after_every_run_and_goes_on_where_it_was(tmp_path: Path) -> None:
    first = next(iter(reproduce("figure-4b", asked(), tmp_path)))
    assert len(lines(tmp_path)) == 1 and first.numbers()["cells"][0]["seeds"].keys() == {0}
    assert ROWS[0] in (tmp_path / "figure-4b.html").read_text()
    begun = lines(tmp_path)
    found = [each.numbers()["cells"] for each in reproduce("figure-4b", asked(), tmp_path)]
    assert [[len(cell["seeds"]) for cell in cells] for cells in found] == [[1], [1, 1], [2, 1], [2, 2]]
    done = lines(tmp_path)
    assert len(done) == 4 and begun.items() <= done.items()  # not run again: seconds would differ
    list(reproduce("figure-5", asked(), tmp_path))  # the same runs, drawn by what was sent
    assert lines(tmp_path) == done
    *_, more = reproduce("figure-4b", asked(rounds=3, seeds=1), tmp_path)
    assert [len(cell["seeds"][0]) for cell in more.numbers()["cells"]] == [3, 3]
    assert all(lines(tmp_path)[name].startswith(text) for name, text in done.items())
    *_, fewer = reproduce("figure-4b", asked(rounds=1, seeds=1), tmp_path)
    assert [len(cell["seeds"][0]) for cell in fewer.numbers()["cells"]] == [1, 1]


def test_bytes_on_the_screen_go_on_with_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rounds in (1, 2):
        *_, found = reproduce("figure-4b", asked(only=ROWS[:1], seeds=1, rounds=rounds), tmp_path)
    (records,) = found.numbers()["cells"][0]["seeds"].values()
    assert traffic_text(*both_ways(records)) in capsys.readouterr().err.splitlines()[-1]


def test_finished_runs_are_shown_whether_asked_for_or_not_and_need_no_checkpoint(tmp_path: Path) -> None:
    list(reproduce("figure-4b", asked(only=ROWS[:1]), tmp_path))
    done = lines(tmp_path)
    for checkpoint in (tmp_path / "runs").glob("*/*.safetensors"):
        checkpoint.unlink()  # to keep what was measured, without the weights
    *_, found = reproduce("figure-4b", asked(only=ROWS[1:], seeds=1), tmp_path)
    assert {cell["row"]: list(cell["seeds"]) for cell in found.numbers()["cells"]} == {ROWS[0]: [0, 1], ROWS[1]: [0]}
    warning = "Means are over 1 to 2 seeds: compare them with care."
    assert found.text().endswith(f"\n{warning}") and warning in found.page().html()
    *_, again = reproduce("figure-4b", asked(), tmp_path)
    assert done.items() <= lines(tmp_path).items()  # not run again
    assert [len(cell["seeds"]) for cell in again.numbers()["cells"]] == [2, 2] and warning not in again.text()


def test_a_setting_of_the_methods_asked_for_need_not_be_one_of_the_others(tmp_path: Path) -> None:
    """FedAvg has no `coding`; the second time, finished runs of all methods are looked for."""
    plain = asked(only=ROWS[:1], seeds=1, rounds=1, settings=(*SMALL, "method.coding=plain"))
    for _ in range(2):
        *_, found = reproduce("figure-4b", plain, tmp_path)
        assert [cell["row"] for cell in found.numbers()["cells"]] == list(ROWS[:1])


def test_a_run_of_another_machine_says_where_it_was_made(tmp_path: Path) -> None:
    list(reproduce("figure-4b", asked(seeds=1), tmp_path))
    first, _ = sorted((tmp_path / "runs").glob("*/environment.json"))
    first.write_text(json.dumps({**json.loads(first.read_text()), "commit": "another"}))
    *_, found = reproduce("figure-4b", asked(seeds=1), tmp_path)
    made = {cell["folders"][0]: cell["environments"] for cell in found.numbers()["cells"]}
    assert made.pop(first.parent.name)[0]["commit"] == "another" and list(made.values()) == [{}]


def test_the_command_shows_a_table_and_writes_numbers_page_drawing_and_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [word for setting in SMALL for word in ("--set", setting)]
    rows = [word for row in ROWS for word in ("--only", row)]
    short = ["--seeds", "1", "--rounds", "1", "--device", "cpu", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "figure-5", *sets, *rows, *short])
    assert stop.value.code == 0
    said = capsys.readouterr()
    assert said.out.startswith(EXPERIMENTS["figure-5"].about) and all(row in said.out for row in ROWS)
    assert f"changed: {', '.join(SMALL)}, rounds=1\n" in said.out
    assert "1/2 FedVote binary, seed 0" in said.err
    found = json.loads((tmp_path / "figure-5.json").read_text())
    for cell in found["cells"]:
        last = json.loads(lines(tmp_path)[cell["folders"][0]])
        assert cell["seeds"]["0"][-1]["uplink_bytes"] == last["uplink_bytes"]
        assert cell["config"]["data"]["name"] == "digits"
    page = (tmp_path / "figure-5.html").read_text()
    assert "https://" not in page and "data.name=digits" in page  # which the paper does not have
    ElementTree.parse(tmp_path / "figure-5" / "accuracy-by-uplink.svg")
    assert re.findall(r'<a href="([^"]+)"', (tmp_path / "index.html").read_text()) == ["figure-5.html"]


def test_a_mistake_shows_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"there is no experiment 'figure-9'; known: figure-3, .*, all of them: all, or your own as FILE.py:NAME",
    ):
        list(reproduce("figure-9", Asked(), tmp_path))
    with pytest.raises(ConfigError, match="speed"):
        list(reproduce("figure-4b", asked(settings=(*SMALL, "local.speed=1")), tmp_path))
    assert not list(tmp_path.iterdir())


def test_named_alone_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert all(f"{name} " in said and each.about in said for name, each in EXPERIMENTS.items())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_name_that_only_takes_is_listed_and_nothing_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, "--list", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert stop.value.code == 0 and said.startswith(EXPERIMENTS[name].about) and not list(tmp_path.iterdir())
    with pytest.raises(ConfigError) as unknown:
        next(iter(EXPERIMENTS[name].measure(Asked(only=("another row",)), tmp_path)))
    known = str(unknown.value).partition("; it has: ")[2].split("; ")
    assert [line.strip() for line in said.splitlines() if line.startswith("  ")] == known


def test_what_is_counted_needs_no_runs(tmp_path: Path) -> None:
    (found,) = reproduce("table-3", Asked(), tmp_path)
    assert not (tmp_path / "runs").exists() and "vgg7" in found.text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table-3", ["--set", "data.name=digits"]),
        ("table-3", ["--rounds", "3"]),
        ("lemma-1", ["--set", "typo=1"]),
        ("theorem-1", ["--set", "method.lr=1"]),
        ("figure-3", ["--rounds", "3"]),
    ],
)
def test_a_change_that_would_change_nothing_is_refused(
    name: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, *words, "--out", str(tmp_path / "out")])
    assert stop.value.code == 2 and f"{words[0]} changes nothing in {name}: leave it out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_all_experiments_take_changes_that_some_have_no_use_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fedvote.studies.experiments.EXPERIMENTS", {"table-3": EXPERIMENTS["table-3"]})
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "all", "--set", "engine.compile=true", "--rounds", "3", "--out", str(tmp_path)])
    assert stop.value.code == 0 and "changed" not in capsys.readouterr().out
    assert "changed" not in json.loads((tmp_path / "table-3.json").read_text())["about"]


def test_coded_and_plain_votes_are_the_same_votes_in_fewer_bytes(tmp_path: Path) -> None:
    *_, found = reproduce("wire", asked(only=("entropy", "plain"), seeds=1), tmp_path)
    coded, plain = ([record for record in cell["seeds"][0]] for cell in found.numbers()["cells"])
    assert [one["accuracy"] for one in coded] == [one["accuracy"] for one in plain]
    for one, other in zip(coded, plain, strict=True):
        assert one["uplink_bytes"] < other["uplink_bytes"] and one["downlink_bits_per_weight"] > 0
