"""`fedvote deploy`: what does not need a server."""

from __future__ import annotations

from pathlib import Path

from fedvote.engines.flower.roster import keys_in
from tests.cli.command import SMALL, Command, Refusal


def test_who_makes_a_key_is_told_by_what_the_server_will_know_it(fedvote: Command, tmp_path: Path) -> None:
    said = fedvote("deploy", "key", "keys/north").out
    ((known, name),) = keys_in(tmp_path / "keys").items()
    assert name == "north" and said.strip().endswith(f"which will call it {known}")


def test_a_finished_run_and_other_settings_start_nothing(fedvote: Command, refused: Refusal) -> None:
    same = ("deploy", "local", "--out", "local", *SMALL[:-2])  # without the device
    assert fedvote("run", "--out", "local/run", *SMALL).code == 0
    finished = fedvote(*same)
    assert finished.code == 0 and finished.out.startswith("the run in local/run is finished, after 2 rounds")
    assert "local/run holds another run: it differs in seed" in refused(*same, "--set", "seed=3")
    assert "has 2 rounds already, asked for 1" in refused(*same, "--set", "rounds=1")


def test_a_folder_with_other_files_starts_nothing(refused: Refusal, tmp_path: Path) -> None:
    (tmp_path / "local" / "run").mkdir(parents=True)
    (tmp_path / "local" / "run" / "notes.txt").write_text("mine")
    assert "local/run is not empty and holds no run" in refused("deploy", "local", "--out", "local", *SMALL[:-2])
    assert not (tmp_path / "local" / "federation").exists()
