"""`evaluate` judges any network on any data, in numbers that can be checked by hand."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedvote
from fedvote.core import Dataset, Examples
from fedvote.data import from_arrays
from fedvote.errors import FedVoteError
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run


class Same(nn.Module):
    """Outputs are inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return x * self.training + x * (not self.training) * 2  # a network in training mode would answer otherwise


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("network", "options", "words"),
    [
        (Pair(), {}, "fails on inputs of shape .*; it takes a batch of them in float32, and returns one tensor"),
        (nn.Linear(3, 3).double(), {}, "fails on inputs of shape .* in float32"),
        (nn.Linear(3, 3), {"batch": 0}, "batch is 0, expected a whole number above 0"),
        (
            nn.Linear(3, 3),
            {"loss": nn.CrossEntropyLoss(reduction="none")},
            r"returns a tensor of shape \(4,\).*add .mean",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_one_sentence(network: nn.Module, options: dict[str, Any], words: str) -> None:
    data = from_arrays(X, [0, 1, 0, 2], X, [0, 1, 0, 2])
    with pytest.raises(FedVoteError, match=words):
        fedvote.evaluate(network, data, **options)


X = torch.tensor([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [5.0, 0.0, 1.0], [0.0, 1.0, 4.0]])


def of(y: Any, **options: Any) -> Dataset:
    return from_arrays(X, y, X, y, **options)


def test_the_confusion_matrix_counts_answers_by_true_class() -> None:
    network = Same()
    found = fedvote.evaluate(network, of([0, 1, 1, 0], classes=["a", "b", "c"]))
    assert found["confusion"] == [[1, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert found["by_class"] == {"a": 0.5, "b": 0.5, "c": None} and found["accuracy"] == 0.5
    assert found["examples"] == 4


def test_every_layer_is_in_the_mode_of_before_also_after_an_error() -> None:
    network = nn.Sequential(nn.Linear(3, 3).eval(), nn.BatchNorm1d(3), Same())
    for data in (
        of([0, 1, 1, 0], classes=["a", "b", "c"]),
        from_arrays(X[:, :2], [0, 1, 1, 0], X[:, :2], [0, 1, 1, 0]),
    ):
        with suppress(fedvote.ModelError):
            fedvote.evaluate(network, data)
        assert [layer.training for layer in network] == [False, True, True] and network.training


def test_inputs_are_scaled_as_in_training() -> None:
    data = of([0, 1, 0, 2], mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 100.0])
    assert fedvote.evaluate(Same(), data)["accuracy"] == 0.75


def test_other_tasks_have_their_own_numbers() -> None:
    labels = fedvote.evaluate(Same(), of((X > 0).int(), task="multi-label"))
    assert labels["f1"] == 1 and labels["by_class"] == {"label 0": 1.0, "label 1": 1.0, "label 2": 1.0}
    numbers = fedvote.evaluate(Same(), of(2 * X, task="regression"), metric="mae")
    assert numbers["mae"] == 0 and numbers["loss"] == 0 and "by_class" not in numbers


def largest_error(outputs: Tensor, targets: Tensor) -> float:
    return float((outputs - targets).abs().max())


def absolute(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs().mean()


@pytest.mark.parametrize(
    ("loss", "metric", "name"), [("huber", "mae", "mae"), (absolute, largest_error, "largest_error")]
)
def test_it_judges_by_the_metric_and_the_loss_that_it_is_given_as_the_run_did(
    loss: Any, metric: Any, name: str
) -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    data = from_arrays(x[:40], x[:40, 0], x[40:], x[40:, 0], task="regression")
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))  # without batch norm: one loss
    settings = {"clients": 2, "rounds": 1, "steps": 2, "batch": 5, "device": "cpu", "loss": loss, "metric": metric}
    run = fedvote.simulate(network, data, fedvote.FedAvg(), **settings)
    (last,) = run
    found = fedvote.evaluate(run.deployed(last), data, loss=loss, metric=metric)
    assert (found[name], found["loss"]) == pytest.approx((last.record[name], last.record["loss"]))
    usual = fedvote.evaluate(run.deployed(last), data)
    assert "r2" in usual and name not in usual and usual["loss"] != pytest.approx(found["loss"])


def test_what_is_no_network_or_does_not_fit_is_refused() -> None:
    with pytest.raises(fedvote.ConfigError, match="got a str, expected a Module"):
        fedvote.evaluate("network", of([0, 1, 1, 0]))  # type: ignore[arg-type]
    with pytest.raises(fedvote.ModelError, match=r"outputs of shape \(3,\), expected \(2,\)"):
        fedvote.evaluate(Same(), of([0, 1, 1, 0]))
    with pytest.raises(fedvote.ModelError, match=r"fails on inputs of shape \(3,\)"):
        fedvote.evaluate(nn.Linear(7, 2), of([0, 1, 1, 0]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "judged"
    settings = ["rounds=1", "local.steps=3", "local.batch=8", "federation.clients=4"]
    for _ in run(read("quickstart", settings), RunFolder(path), device="cpu"):
        pass
    return path


def test_a_run_ends_with_the_evaluation_of_its_network(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text())
    record = RunFolder(folder).metrics()[-1]
    assert found["accuracy"] == pytest.approx(record["accuracy_calibrated"], abs=1e-9)
    again = fedvote.evaluate(fedvote.load_network(folder), fedvote.data.load("digits"))
    assert again["confusion"] == found["confusion"] and again["accuracy"] == found["accuracy"]
    assert sum(map(sum, found["confusion"])) == found["examples"] == len(fedvote.data.load("digits").test)
    assert list(found["by_client"]) == ["0", "1", "2", "3"]
    assert all(0 <= value <= 1 for value in found["by_client"].values())


def test_the_page_of_a_run_shows_it(folder: Path) -> None:
    from fedvote.report import write_report

    page = write_report([folder], folder / "report.html").read_text()
    for words in ("Confusion matrix", "Accuracy by class", "Accuracy by client", "Weights flipped"):
        assert words in page, words
    assert "the share of deployed weights that changed in the round" in page


def test_a_network_that_scales_its_inputs_gets_them_raw() -> None:
    class Raw(Same):
        scales_inputs = True

    data = of([0, 1, 0, 2], mean=[0.0, 0.0, 0.0], std=[1.0, 1.0, 100.0])
    assert fedvote.evaluate(Raw(), data)["accuracy"] == 1
    assert isinstance(data.test, Examples)
