"""Slips of the pen get one sentence with the remedy: wrong order, wrong kinds, parts of another run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedvote
from fedvote import ConfigError, DataError, Doubt, FedAvg, FedVote, FedVoteError, ModelError
from fedvote.data.partition import IID
from tests.toy import CLASSES, FEATURES, dataset, module

X, Y = np.arange(18, dtype=np.float32).reshape(6, 3) / 18, np.array([0, 1, 0, 1, 0, 1])


def simulated(method: FedVote | FedAvg | None = None, network: nn.Module | None = None, **knobs: Any) -> Any:
    options: dict[str, Any] = {"clients": 3, "rounds": 1, "steps": 1, "batch": 8, "device": "cpu"} | knobs
    return fedvote.simulate(network or module(), dataset(), method, **options)


class Series:
    """A column of pandas has no hash, and no truth."""

    __hash__ = None  # type: ignore[assignment]


class Frame:
    """As much of a pandas.DataFrame as is looked at."""

    columns = ("a", "b")

    def to_numpy(self) -> np.ndarray:
        raise AssertionError


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: fedvote.from_arrays(X[:4], X[4:], Y[:4], Y[4:]),
            "have 4, 2, 4 and 2 rows, expected x_train, y_train, x_test, y_test: .* not that of train_test_split",
        ),
        (lambda: fedvote.from_arrays(X, Y, None, None), "x_test is nothing, expected .*: without test examples, keep"),  # type: ignore[arg-type]
        (lambda: fedvote.from_arrays({"x": X}, Y, X, Y), "x_train is a dict, expected an array or a tensor"),  # type: ignore[arg-type]
        (
            lambda: fedvote.from_arrays(np.array([[None, 1.0], [2.0, 3.0]]), Y[:2], X, Y),
            "x_train holds nothing among its values, expected numbers",
        ),
        (lambda: fedvote.from_arrays(X, Y, X, Y, classes={0: "a", 1: "b"}), "in order: give a list of strings"),  # type: ignore[arg-type]
        (lambda: fedvote.from_arrays(X, Y, X, Y, classes={"a", "b"}), "in order: give a list of strings"),  # type: ignore[arg-type]
        (lambda: fedvote.from_pandas(Frame(), Frame(), Series()), "target is a Series, expected the name of a column"),
        (
            lambda: fedvote.from_arrays(X, np.zeros((6, 2, 2)), X, np.zeros((6, 2, 2)), task="regression"),
            r"shape \(6, 2, 2\) .*: flatten each example's, y.reshape\(len\(y\), -1\)",
        ),
    ],
)
def test_data_that_are_given_wrongly(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        call()


def test_names_of_classes_are_strings() -> None:
    assert fedvote.from_arrays(X, Y, X, Y, classes=[7, 9]).classes == ("7", "9")  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"vote": [0]}, r"vote is \[0\], expected a list of names"),
        ({"keep_float": [3]}, r"keep_float is \[3\], expected a list of names"),
        ({"partition": IID}, r"partition is <class .*IID'>, expected a name .*; give an object, IID\(\.\.\.\)"),
        ({"keep_float": 3}, "keep_float is 3, expected a list of names"),
        ({"owned": 3}, "owned is an int, expected the examples of each client in order: give a list of these"),
        ({"owned": ([row] for row in range(3))}, "owned is a generator, expected .*: give a list of these"),
        ({"owned": {"ann": [0], "bob": [1], "eve": [2]}}, "owned is a dict, expected .*: give its values as a list"),
    ],
)
def test_settings_of_the_wrong_kind(knobs: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ConfigError, ModelError), match=sentence):
        simulated(**knobs)


def other_network() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 9), nn.ReLU(), nn.Linear(9, CLASSES))


@pytest.mark.parametrize("other", [lambda: simulated(FedAvg()), lambda: simulated(network=other_network())])
def test_a_snapshot_of_another_run_is_refused(other: Callable[[], Any]) -> None:
    (snapshot,) = simulated()
    for use in (other().deployed, lambda given: next(other().run(given))):
        with pytest.raises(ConfigError, match="the snapshot of round 1 is of another run: it has "):
            use(snapshot)


def test_a_run_goes_on_after_a_snapshot_alone() -> None:
    with pytest.raises(ConfigError, match="got an int, expected a Snapshot"):
        next(simulated().run(1))


@pytest.mark.parametrize(
    ("method", "knobs"),
    [
        (FedVote(), {}),
        (FedVote(reputation="camps", deploy_rounds=2), {}),  # type: ignore[arg-type]
        (FedVote(train_float=True, float_levels=7), {"kept_broadcasts": 2}),
        (fedvote.Eden(), {}),
    ],
)
def test_a_snapshot_of_ones_own_run_is_taken_in_every_round(method: Any, knobs: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)  # few clients for camps
        run = simulated(method, rounds=3, **knobs)
    snapshots = list(run)
    for snapshot in snapshots:
        run.deployed(snapshot)
        assert len(list(run.run(snapshot))) == 3 - snapshot.round


def test_what_evaluate_and_exports_cannot_take(tmp_path: Any) -> None:
    run = simulated()
    (snapshot,) = run
    deployed = run.deployed(snapshot)
    for batch in (0, 1.5, "all"):
        with pytest.raises(ConfigError, match=re.escape(f"batch is {batch!r}, expected a whole number above 0")):
            fedvote.evaluate(deployed, dataset(), batch=batch)  # type: ignore[arg-type]
    with pytest.raises(FedVoteError, match=r"^the inputs are torch.uint8 .*, expected them as in the training data"):
        fedvote.evaluate(deployed, "digits")
    for inputs in (True, dataset(), X):
        with pytest.raises(ConfigError, match=r"^inputs is an? \w+, expected .*, such as data.train.x\[:200\]: a tens"):
            fedvote.export_onnx(deployed, tmp_path / "network.onnx", inputs=inputs)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"the file is nothing, expected a path that ends in \.onnx"):
        fedvote.export_onnx(deployed, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="got a str, expected a deployed network"):
        fedvote.export_onnx("network.onnx", deployed)  # type: ignore[arg-type]


def test_classes_of_other_names_are_a_doubt() -> None:
    run = simulated()
    (snapshot,) = run
    data, deployed = dataset(), run.deployed(snapshot)
    renamed = fedvote.Dataset("mine", data.train, data.test, ("b", "a", "c"))
    with pytest.warns(Doubt, match="the network's classes are a, b, c, and those of mine are b, a, c: they are comp"):
        fedvote.evaluate(deployed, renamed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedvote.evaluate(deployed, data)
        fedvote.evaluate(deployed.network, renamed)  # which has no names


def test_a_mean_of_bytes_that_are_not_divided_is_a_doubt() -> None:
    x = (X * 255).astype(np.uint8)
    with pytest.warns(Doubt, match="mean is 127, but bytes are divided by 255 first"):
        fedvote.from_arrays(x, Y, x, Y, mean=127, std=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedvote.from_arrays(x, Y, x, Y, mean=127 / 255, std=60 / 255)


def test_regression_with_a_frozen_last_layer_is_a_doubt() -> None:
    data = fedvote.from_arrays(X, X[:, 0], X, X[:, 0], task="regression")
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with pytest.warns(Doubt, match="is regression, but the last layer does not train, .*: set train_float=True"):
        fedvote.simulate(network, data, FedVote(), clients=2, batch=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedvote.simulate(network, data, FedVote(train_float=True), clients=2, batch=2)
        fedvote.simulate(network, data, FedVote(), clients=2, batch=2, keep_float=[])
        fedvote.simulate(network, data, FedAvg(), clients=2, batch=2)


def test_another_default_dtype_is_refused() -> None:
    (expected,) = simulated()
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ConfigError, match=r"the default dtype of torch is torch\.float64, expected torch\.float32"):
            simulated()
    finally:
        torch.set_default_dtype(torch.float32)
    (again,) = simulated()
    assert again.record["loss"] == expected.record["loss"]


def test_a_client_without_examples_is_named_before_any_round_draws_it() -> None:
    owned = [torch.arange(8), torch.arange(0), torch.arange(8, 16)]
    with pytest.raises(DataError, match="client 1 has no training examples; leave it out, or give it some"):
        simulated(owned=owned, cohort=1, rounds=50)
