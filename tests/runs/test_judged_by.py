"""What a run was judged by is named in its folder, and nothing else judges its network later."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedvote import ConfigError
from fedvote.engines.flower.local_data import servers_site
from fedvote.export.export_run import export_run
from fedvote.export.network_file import save_network
from fedvote.report.read_run import read_run
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import read
from fedvote.runs.description import ELSEWHERE, JUDGED_BY, describe
from fedvote.runs.experiment import dataset
from fedvote.runs.folder import RunFolder
from fedvote.runs.judged_by import check_same_data, data_of_run, judged_by
from fedvote.runs.simulated_run import run

SETTINGS = ["rounds=1", "federation.clients=2", "local.steps=1", "local.batch=20"]


def save(folder: Path, first: int) -> None:
    """Test examples from digits, from this one on."""
    folder.mkdir(exist_ok=True)
    test = dataset("digits").test
    np.savez(folder / "test.npz", x=test.x[first : first + 120].numpy(), y=test.y[first : first + 120].numpy())


@pytest.fixture
def federated(tmp_path: Path) -> Path:
    """The folder of a run whose server brought its own test examples; its configuration names digits."""
    save(tmp_path / "hospital", 0)
    config = read("quickstart", SETTINGS)
    federation = servers_site(config, str(tmp_path / "hospital"), "cpu")
    folder = RunFolder(tmp_path / "run")
    claim(folder, config, resume=False)
    describe(folder, federation, judged_by(str(tmp_path / "hospital"), federation.data))
    snapshot = Snapshot(1, federation.start().state, {}, {"round": 1})
    folder.add(snapshot)
    save_network(folder.path, federation, snapshot, config.model)
    release(folder)
    return folder.path


def test_a_federated_run_is_exported_with_its_own_data(federated: Path, tmp_path: Path) -> None:
    data = data_of_run(RunFolder(federated))
    assert len(data.test) == 120 and data.name == str(tmp_path / "hospital")
    accuracy, other = (export_run(federated, test=True, data=data)[1]["accuracy"] for data in ("", "digits"))
    assert accuracy * 120 == pytest.approx(round(accuracy * 120)) and other != accuracy


def test_data_that_are_not_here_are_one_sentence(federated: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "hospital")
    for int8 in (True, False):
        with pytest.raises(ConfigError, match=r"was judged by, .*hospital, are not here .* with --data") as refusal:
            export_run(federated, int8=int8, test=not int8)
        assert "\n" not in str(refusal.value)


def test_other_data_in_the_same_place_are_refused(federated: Path, tmp_path: Path) -> None:
    save(tmp_path / "hospital", 5)
    with pytest.raises(ConfigError, match=r"the test examples of .*hospital are not those that the run"):
        export_run(federated, test=True)
    with pytest.raises(ConfigError, match=r"was judged by .*hospital .* has other examples"):
        federation = servers_site(read("quickstart", SETTINGS), str(tmp_path / "hospital"), "cpu")
        check_same_data(RunFolder(federated), federation, judged_by(str(tmp_path / "hospital"), federation.data))


def test_an_older_run_on_data_from_elsewhere_does_not_fall_back_to_the_configuration(federated: Path) -> None:
    folder = RunFolder(federated)
    about = folder.environment()
    del about[JUDGED_BY]
    assert about["data"] == ELSEWHERE
    folder.environment_file.write_text(json.dumps(about))
    with pytest.raises(ConfigError, match="does not say which data it was judged by: name the data with --data"):
        export_run(federated, test=True)


def test_code_that_makes_data_is_not_run_without_trust(federated: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    folder = RunFolder(federated)
    about = folder.environment()
    about[JUDGED_BY]["source"] = f"{tmp_path}/theirs.py:data"
    folder.environment_file.write_text(json.dumps(about))
    with pytest.raises(ConfigError, match=r"would run .*theirs\.py"):
        export_run(federated, test=True)
    assert not (tmp_path / "ran").exists()


def test_a_report_names_the_data_that_judged_the_run(federated: Path, tmp_path: Path) -> None:
    assert read_run(federated, "run").setting("data", "name") == str(tmp_path / "hospital")


def test_held_out_examples_judge_a_run_again(tmp_path: Path) -> None:
    list(run(read("quickstart", [*SETTINGS, "data.validation=0.2"]), RunFolder(tmp_path), device="cpu"))
    assert len(data_of_run(RunFolder(tmp_path)).test) == RunFolder(tmp_path).environment()[JUDGED_BY]["examples"]
    _, quality = export_run(tmp_path, test=True)
    assert quality["accuracy"] == pytest.approx(RunFolder(tmp_path).metrics()[-1]["accuracy_calibrated"])
