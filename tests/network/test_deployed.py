"""What a run hands out takes inputs as the data have them, wherever a module is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fedvote
from fedvote import ConfigError, FedAvg, FedVote, Simulation
from fedvote.core import Dataset
from fedvote.method import Method


def columns() -> Dataset:
    """Two classes that only a scaled column tells apart: the other is in the thousands."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    x = np.stack([rng.normal(5000, 1000, 240), y + rng.normal(0, 0.2, 240)], 1)
    return fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:], standardise=True)


def images() -> Dataset:
    """Dark and bright ones, as bytes."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    x = rng.integers(0, 150, (240, 1, 2, 2)) + 100 * y[:, None, None, None]
    x = x.astype(np.uint8)
    return fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:])


def module(inputs: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))


def trained(data: Dataset, method: Method) -> Simulation:
    inputs = data.train.x[0].numel()
    return fedvote.simulate(
        module(inputs), data, method, clients=2, rounds=2, steps=15, batch=20, partition="iid", device="cpu"
    )


@pytest.mark.parametrize("make", [columns, images])
@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedAvg(lr=0.01)], ids=["fedvote", "fedavg"])
def test_a_deployed_network_answers_the_data_as_they_are_like_the_run_and_like_a_loaded_one(
    make: Callable[[], Dataset], method: Method, tmp_path: Path
) -> None:
    data = make()
    run = trained(data, method)
    *_, last = run
    network, x = run.deployed(last), data.test.x
    accuracy = float((network(x).argmax(1) == data.test.y).float().mean())
    assert accuracy == pytest.approx(last.record["accuracy_calibrated"]) and accuracy > 0.8
    assert fedvote.evaluate(network, data)["accuracy"] == pytest.approx(accuracy)
    loaded = fedvote.load_network(fedvote.save_network(tmp_path, run.federation, last), module(x[0].numel()))
    assert (loaded.votes, loaded.shape, loaded.dtype, loaded.classes) == (
        network.votes, network.shape, network.dtype, network.classes
    )  # fmt: skip
    ours, theirs = network.state_dict(), loaded.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_layers_are_the_users_own_with_their_names() -> None:
    run = trained(columns(), FedVote())
    network = run.deployed(run.federation.start())
    own = module(2)
    assert type(network.network) is nn.Sequential and not network.training
    own.load_state_dict(network.network.state_dict())
    x, _ = run.federation.data.test.take(slice(None))
    assert torch.equal(own.eval()(x), network(run.federation.data.test.x))


def test_training_goes_on_from_a_deployed_network_as_from_its_layers() -> None:
    run = trained(columns(), FedAvg())
    network = run.deployed(run.federation.start())

    def start(module: nn.Module, start: nn.Module | str = "given") -> Tensor:
        made = fedvote.simulate(module, columns(), FedAvg(), clients=2, start=start, device="cpu")
        return torch.cat([made.federation.network.start.voted, made.federation.network.start.floats])

    expected = start(network.network)
    assert torch.equal(start(network), expected) and torch.equal(start(module(2), network), expected)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (
            np.zeros((3, 2)),
            r"a numpy array of float64, .* torch\.float32 of shape \(n, 2\); use .*from_numpy\(x\)\.float",
        ),
        (torch.zeros(3, 2, dtype=torch.float64), r"torch\.float64 of shape \(3, 2\), .*; use x\.float\(\)"),
        ([[0.0, 0.0]], r"a list, .*; use torch\.tensor\(x\)"),
        (torch.zeros(2), r"torch\.float32 of shape \(2,\), .*; give a batch \(one input: n = 1"),
    ],
)
def test_inputs_of_another_kind_are_told_how_to_become_the_right_ones(x: Any, words: str) -> None:
    run = trained(columns(), FedVote())
    with pytest.raises(ConfigError, match=words):
        run.deployed(run.federation.start())(x)


def test_a_deployed_network_is_exported_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    from fedvote.export import onnx

    data = columns()
    run = trained(data, FedVote(lr=0.1))
    *_, last = run
    network = run.deployed(last)
    made = fedvote.export_onnx(network, tmp_path / "network.onnx", inputs=data.test.x)
    assert made.votes == 32
    assert np.allclose(onnx.outputs(made.path, data.test.x), network(data.test.x).numpy(), atol=1e-4)
