"""Reading a run folder: what is there is read, what is cut off is skipped, what is missing is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedvote.errors import ConfigError
from fedvote.report.read_run import read_runs
from tests.report.pages import MakeRun


def append(folder: Path, text: str) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(text)


@pytest.mark.parametrize("cut", ['{"round": 4, "accu', "{", '{"round"', '{"round": 4, "loss": NaN, "name": "\udce2'])
def test_a_last_line_that_was_cut_off_is_skipped(make_run: MakeRun, cut: str) -> None:
    folder = make_run(rounds=3)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(cut.encode(errors="surrogateescape"))
    assert [record["round"] for record in read_runs([folder])[0].rounds] == [1, 2, 3]


def test_a_broken_line_in_the_middle_is_named(make_run: MakeRun) -> None:
    folder = make_run(rounds=3)
    append(folder, 'nonsense\n{"round": 5}\n')
    with pytest.raises(ConfigError, match=r"Line 4 of .*metrics.jsonl"):
        read_runs([folder])


def test_a_round_that_a_resumed_run_repeats_counts_once_and_as_written_last(make_run: MakeRun) -> None:
    folder = make_run(rounds=2)
    append(folder, '{"round": 2, "uplink_bytes": 7}\n')
    assert [record.get("uplink_bytes") for record in read_runs([folder])[0].rounds] == [80_000, 7]


def test_megabytes_are_summed_over_the_rounds_so_far(make_run: MakeRun) -> None:
    folder = make_run(rounds=0)
    for index, nbytes in enumerate([1_000_000, 250_000, 3_000_000], start=1):
        append(folder, json.dumps({"round": index, "uplink_bytes": nbytes - 1000, "downlink_bytes": 1000}) + "\n")
    assert read_runs([folder])[0].megabytes == [1.0, 1.25, 4.25]


@pytest.mark.parametrize("file", ["config.toml", "metrics.jsonl"])
def test_a_folder_without_a_file_it_needs_is_refused_in_one_sentence(make_run: MakeRun, file: str) -> None:
    folder = make_run()
    (folder / file).unlink()
    with pytest.raises(ConfigError, match=rf"{folder.name} has no {file}.* give the folder") as caught:
        read_runs([folder])
    assert "\n" not in str(caught.value)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere: give the folder"):
        read_runs([tmp_path / "nowhere"])


def test_no_folder_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        read_runs([])


def test_a_configuration_that_is_not_toml_is_refused(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "config.toml").write_text("rounds = = 3")
    with pytest.raises(ConfigError, match=r"config.toml is not TOML"):
        read_runs([folder])


@pytest.mark.parametrize("text", ["[]", "{", '{"classes": ["a", "b"], "counts": [[1]]}', '{"counts": []}'])
def test_a_clients_file_of_another_shape_is_refused(make_run: MakeRun, text: str) -> None:
    folder = make_run()
    (folder / "clients.json").write_text(text)
    with pytest.raises(ConfigError, match=r"clients.json does not hold"):
        read_runs([folder])


def test_a_missing_clients_file_is_no_error(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "clients.json").unlink()
    assert read_runs([folder])[0].clients is None


def test_runs_of_one_name_are_told_apart_by_their_parents(make_run: MakeRun) -> None:
    runs = read_runs([make_run("a/seed0"), make_run("b/seed0")])
    assert [run.name for run in runs] == ["a/seed0", "b/seed0"]


def test_a_folder_that_is_named_twice_is_read_once(make_run: MakeRun) -> None:
    folder = make_run()
    assert [run.name for run in read_runs([folder, folder / ".." / folder.name])] == ["run"]


def test_the_folder_of_a_sweep_stands_for_the_runs_in_it(make_run: MakeRun, tmp_path: Path) -> None:
    for name in ("lr=2", "lr=1"):
        make_run(f"sweep/{name}", rounds=1)
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    assert [run.name for run in read_runs([tmp_path / "sweep"])] == ["lr=1", "lr=2"]


@pytest.mark.parametrize(
    "content",
    [
        {"confusion": [[1]]},
        {"classes": ["a"], "confusion": [[1, 2]]},
        {"classes": ["a"], "confusion": [["x"]]},
        {"classes": 3, "confusion": [[1]]},
        {"by_class": {"a": "much"}},
        {"by_client": [0.5]},
    ],
)
def test_a_damaged_evaluation_is_named_in_one_sentence(make_run: MakeRun, content: dict[str, object]) -> None:
    folder = make_run()
    (folder / "evaluation.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"evaluation.json is damaged, .* delete it") as caught:
        read_runs([folder])
    assert "\n" not in str(caught.value)


def test_explanations_that_are_none_are_left_out(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "environment.json").write_text('{"measured": 3}')
    assert read_runs([folder])[0].explains == {}
