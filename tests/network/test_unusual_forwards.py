"""Forwards that compute weights, change inputs, keep features or cannot be stacked train all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal, weight_norm

import fedvote
from fedvote import FedAvg, FedVote
from fedvote.errors import ConfigError, ModelError
from fedvote.method import Method
from fedvote.network.network import Network
from tests.network.small_networks import InPlace, mlp, points, trained


@pytest.mark.parametrize("wrap", [weight_norm, orthogonal], ids=["weight_norm", "orthogonal"])
def test_float_methods_train_computed_weights_and_votes_name_the_fix(wrap: Callable[..., nn.Module]) -> None:
    network = mlp()
    network[2] = wrap(network[2])
    assert trained(network, points(), FedAvg(lr=0.03))[1] > 0.6
    with pytest.raises(ModelError, match=r"2 .* computes its weights .*: call .*remove_parametrizations"):
        fedvote.simulate(network, points())


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.body, self.head = nn.EmbeddingBag(12, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.table(x.long())).relu())  # type: ignore[no-any-return]


def test_a_layer_that_cannot_be_stacked_trains_client_by_client_without_a_warning_of_torch() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fedvote.simulate(Bag(), points(tokens=True), FedVote(lr=0.1), clients=2, rounds=3, batch=20, device="cpu")
        assert list(run)[-1].record["accuracy"] > 0.6
    assert not run.federation.network.trial.stackable


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedAvg(lr=0.03)])
def test_a_forward_that_changes_its_input_trains_as_one_that_does_not(method: Method) -> None:
    class Apart(InPlace):
        def forward(self, x: Tensor) -> Tensor:
            return self.body(x * 0.5)  # type: ignore[no-any-return]

    data, clean = points(), points()
    (found, right), (expected, other) = (trained(made, data, method) for made in (InPlace(), Apart()))
    assert right == other > 0.4 and torch.equal(data.train.x, clean.train.x)
    assert all(map(torch.equal, found.parameters(), expected.parameters()))


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedVote(lr=0.1, train_float=True), FedAvg(lr=0.03)])
@pytest.mark.parametrize("stacked", [True, False])
def test_a_forward_that_keeps_its_features_trains(method: Method, stacked: bool) -> None:
    class Features(InPlace):
        def forward(self, x: Tensor) -> Tensor:
            self.features = self.body[:4](x)
            scale = 1 if stacked or self.features.sum() < 1e9 else 2
            return self.body[4](self.features) * scale  # type: ignore[no-any-return]

    run = fedvote.simulate(Features(), points(), method, clients=2, rounds=3, steps=10, batch=20, device="cpu")
    *_, last = run
    assert run.federation.network.trial.stackable == stacked
    assert last.record["accuracy"] > 0.4 and fedvote.evaluate(run.deployed(last), points())["accuracy"] > 0.4


def test_a_compiled_network_is_the_network_that_was_compiled() -> None:
    network = mlp()
    made = Network(torch.compile(network), start="given", shape=(6,))  # type: ignore[arg-type]
    assert made.fingerprint == Network(network, start="given", shape=(6,)).fingerprint


def stepwise(outputs: Tensor, targets: Tensor) -> Tensor:
    loss = F.cross_entropy(outputs, targets)
    return loss if loss > 0.1 else 2 * loss


def test_a_loss_that_depends_on_its_value_trains_client_by_client() -> None:
    run = fedvote.simulate(mlp(), points(), FedAvg(lr=0.01), loss=stepwise, clients=2, rounds=1, device="cpu")
    assert not run.federation.network.trial.stackable and len(list(run)) == 1
    assert "this network or its loss cannot run as a stack" in str(run.federation.summary()).replace("\n", " ")


@pytest.mark.parametrize("column", [False, True])
def test_a_loss_of_ones_own_gets_outputs_and_targets_of_one_shape(column: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 6))
    y = x @ rng.normal(size=6) / 3
    y = y[:, None] if column else y
    data = fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:], task="regression")
    shapes = set()

    def squared(outputs: Tensor, targets: Tensor) -> Tensor:
        shapes.add(outputs.ndim == targets.ndim == 1)
        return (outputs - targets).square().mean()

    assert trained(mlp(1), data, FedAvg(lr=0.01), loss=squared)[1] > 0.5 and shapes == {True}
    with pytest.raises(ConfigError, match=r"fails on outputs of shape \(100,\) and targets of .* \(100,\)"):
        fedvote.simulate(mlp(1), data, loss=lambda outputs, targets: (outputs[:, 0] - targets).mean())
