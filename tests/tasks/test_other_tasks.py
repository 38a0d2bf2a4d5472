"""Regression and multi-label work as classification does: simulated, over Flower, swept, reported and exported."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import fedvote
from fedvote.cli import main
from fedvote.engines.simulate import Simulation
from fedvote.errors import ConfigError
from fedvote.export.c.compiled import can_compile
from fedvote.export.export_run import export_run
from fedvote.federation import Federation
from fedvote.plan import Plan
from fedvote.report import write_report
from fedvote.runs.config import Config
from fedvote.runs.experiment import federation
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.runs.sweep import Point
from fedvote.runs.sweep_results import best
from tests.engines.flower import grid

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))
multi_label, regression = map(importlib.import_module, ("multi_label", "regression"))

REGRESSION = (
    f"data={EXAMPLES / 'regression.py'}:diabetes",
    f"model={EXAMPLES / 'regression.py'}:network",
    "local.batch=32",
    "method.train_float=true",
)
MULTI_LABEL = (f"data={EXAMPLES / 'multi_label.py'}:properties",)


def last(**knobs: Any) -> dict[str, Any]:
    *_, snapshot = fedvote.simulate(**knobs, clients=5)
    return snapshot.record


def test_regression_explains_the_variance_of_unseen_patients() -> None:
    data = regression.diabetes()
    module, method = regression.network(data.shape, 1), fedvote.FedVote(train_float=True)
    record = last(network=module, data=data, method=method, rounds=15, steps=20, batch=32)
    assert record["metric"] == {"name": "r2", "higher_is_better": True, "percent": False}
    assert record["r2"] > 0.2 and record["r2_calibrated"] > 0.2 and "accuracy" not in record
    answers = record["loss"]  # the mean squared error of standardised targets
    assert record["r2"] == pytest.approx(1 - answers / float(data.test.y.var(correction=0)), abs=1e-4)


def test_several_labels_are_learned_at_once() -> None:
    data = multi_label.properties()
    record = last(network=multi_label.digits_cnn(data.shape, 4), data=data, rounds=6, steps=20)
    assert record["f1"] > 0.8


def of_data(settings: tuple[str, ...], *more: str) -> Config:
    return grid.small("rounds=2", *settings, *more)


@pytest.mark.parametrize("settings", [REGRESSION, MULTI_LABEL], ids=["regression", "multi-label"])
def test_both_engines_agree_on_other_tasks(settings: tuple[str, ...], tmp_path: Path) -> None:
    config = of_data(settings)
    simulated = list(Simulation(federation(config, "cpu")).run())
    for a, b in zip(simulated, grid.elect(config, grid.grid_of(4), tmp_path), strict=True):
        for name in a.record.keys() - {"seconds", "seconds_training"}:
            assert a.record[name] == b.record[name], name


def test_a_client_brings_numbers_and_the_server_says_what_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 10)).astype(np.float32), rng.normal(size=60).astype(np.float32)
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y, task="regression")
    from fedvote.engines.flower.local_data import clients_site, servers_site
    from fedvote.engines.flower.server import problem

    config = of_data(REGRESSION, "local.batch=8")
    server = servers_site(config, str(tmp_path), "cpu")
    told = problem(server, config, tmp_path)
    client = clients_site(config, told, 1, str(tmp_path), "cpu")
    assert (told.task, told.names) == ("regression", ("target",))
    assert client.data.task == "regression" and torch.equal(client.data.train.y, torch.from_numpy(y)[:, None])


@pytest.mark.parametrize("own", [[7, 3, 7, 3], ["7", "3", "7", "3"]], ids=["integers", "strings"])
def test_class_names_are_the_same_on_all_machines(own: Any, tmp_path: Path) -> None:
    from fedvote.engines.flower.local_data import clients_site, servers_site
    from fedvote.engines.flower.server import problem

    x = np.zeros((4, 8, 8), np.uint8)
    np.savez(tmp_path / "test.npz", x=x, y=[3, 5, 7, 5])
    np.savez(tmp_path / "train.npz", x=x, y=own)
    config = grid.small("local.batch=2")
    (tmp_path / "server").mkdir()
    np.savez(tmp_path / "server" / "test.npz", x=x, y=[3, 5, 7, 5])
    told = problem(servers_site(config, str(tmp_path / "server"), "cpu"), config, tmp_path)
    client = clients_site(config, told, 1, str(tmp_path), "cpu")
    assert told.names == client.data.classes == ("3", "5", "7")
    assert client.data.train.y.tolist() == [2, 0, 2, 0]


def test_a_sweep_prefers_the_smaller_error(tmp_path: Path) -> None:
    metric = {"name": "rmse", "higher_is_better": False, "percent": False}

    def point(lr: float, rmse: float | None) -> Point:
        traffic = {"uplink_bytes": 1000, "downlink_bytes": 1000}
        record = {"round": 1, "rmse": rmse, "metric": metric, "clients": [0], **traffic}
        return Point((f"method.lr={lr}",), tmp_path, [record], grid.small())

    done = [point(0.1, 3.0), point(0.2, 0.5), point(0.3, None)]
    assert best(done).settings == ("method.lr=0.2",)
    assert "rmse    0.5" in str(done[1])


@pytest.mark.skipif(not can_compile(), reason="there is no C compiler")
def test_a_run_folder_shows_and_exports_another_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, settings = tmp_path / "run", (*REGRESSION, "metric=rmse", "rounds=2", "federation.clients=4")
    with pytest.raises(SystemExit) as stop:
        main(
            ["run", "quickstart", "--device", "cpu", "--out", str(folder), *(w for s in settings for w in ("--set", s))]
        )
    assert stop.value.code == 0
    said = capsys.readouterr()
    assert "rmse: deployed network" in said.out and "rmse" in said.err
    record = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    page = (folder / "report.html").read_text()
    assert "Rmse by round" in page and "the smaller the rmse, the better" in page.lower()
    _, quality = export_run(folder, "c", test=True)
    assert quality["rmse"] == pytest.approx(record["rmse_calibrated"], rel=1e-3)
    assert fedvote.load_network(folder).classes == ("progression",)


def test_labels_cannot_be_flipped_where_there_are_none() -> None:
    data = regression.diabetes()
    with pytest.raises(ConfigError, match="LabelFlip changes classes, but the task of diabetes is regression"):
        fedvote.simulate(regression.network(data.shape, 1), data, attack="label-flip", hostile=2, batch=8)


def test_a_trigger_needs_classes() -> None:
    data = regression.diabetes()
    with pytest.raises(ConfigError, match="Backdoor changes classes, but the task of diabetes is regression"):
        fedvote.simulate(regression.network(data.shape, 1), data, attack="backdoor", hostile=2, batch=8)


def test_labels_cannot_be_smoothed_where_there_are_none() -> None:
    data = regression.diabetes()
    with pytest.raises(ConfigError, match=r"label_smoothing is 0\.1, but the loss is MSE: only cross-entropy"):
        fedvote.simulate(regression.network(data.shape, 1), data, label_smoothing=0.1, batch=8)


def test_smoothed_labels_change_training_and_leave_the_loss_of_evaluation_plain() -> None:
    data = fedvote.from_arrays(np.eye(4, dtype=np.float32), range(4), np.eye(4, dtype=np.float32), range(4))
    plan = Plan.of(clients=1, batch=4, label_smoothing=0.4)
    made = Federation.of(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)), data, plan=plan)
    x, y = data.test.take(slice(None))
    outputs = made.network(made.network.start.voted, made.network.start.floats, x)
    trained = made.network.loss(made.network.start.voted, made.network.start.floats, x, y)
    assert torch.equal(trained, F.cross_entropy(outputs, y, label_smoothing=0.4))
    assert torch.equal(made.goal.loss(outputs, y), F.cross_entropy(outputs, y))


def test_the_success_of_a_backdoor_is_beside_any_metric(tmp_path: Path) -> None:
    config = grid.small("metric=f1", "attack=backdoor", "federation.hostile=1", "rounds=1")
    (snapshot,) = run(config, RunFolder(tmp_path), device="cpu")
    assert snapshot.record["metric"]["name"] == "f1" and 0 <= snapshot.record["backdoor_success"] <= 1
    page = write_report([tmp_path], tmp_path / "report.html").read_text()
    assert "F1 by traffic" in page and "backdoor" in page and "Confusion matrix" in page


def test_a_network_with_too_many_outputs_is_told_how_many_targets_there_are() -> None:
    data = regression.diabetes()
    with pytest.raises(fedvote.ModelError, match=r"but the data has 1 target: expected \(1,\)"):
        fedvote.simulate(regression.network(data.shape, 2), data, batch=8)
