"""The network that is deployed answers as the one that trained: in evaluation, and with one input at a time."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fedvote
from fedvote import FedAvg
from fedvote.errors import ConfigError, Doubt, ModelError
from fedvote.tasks.losses import BCE
from tests.network.small_networks import mlp, points


class Changed(nn.Module):
    """An MLP with something else at its end, or at its start."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.body = kind, mlp()

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "squeeze":
            return self.body(x.squeeze())  # type: ignore[no-any-return]
        if self.kind == "own batch norm":
            return self.body((x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt())  # type: ignore[no-any-return]
        if self.kind == "pairs":
            return self.body(x.view(-1, 2, 6).flip(1).reshape(-1, 6))  # type: ignore[no-any-return]
        y: Tensor = self.body(x)
        if self.kind == "classes":
            return y if self.training else y.argmax(1)
        return y if self.training or self.kind != "fewer" else y[:, :2]


def simulated(network: nn.Module) -> fedvote.Simulation:
    return fedvote.simulate(network, points(), FedAvg(), clients=2, rounds=1, steps=1, batch=20, device="cpu")


@pytest.mark.parametrize("kind", ["squeeze", "own batch norm", "pairs"])
def test_a_network_that_answers_one_input_otherwise_than_a_batch_is_a_doubt(kind: str) -> None:
    with pytest.warns(Doubt, match="gives an input alone other outputs than in a batch"):
        simulated(Changed(kind))


@pytest.mark.parametrize("kind", ["classes", "fewer"])
def test_other_outputs_in_evaluation_are_refused_before_training(kind: str) -> None:
    with pytest.raises(ModelError, match=r"in evaluation, but torch\.float32 of shape \(2, 3\) in training"):
        simulated(Changed(kind))


def binary(last: nn.Module, loss: Any = "auto") -> fedvote.Simulation:
    x = points().train.x
    data = fedvote.from_arrays(x, x[:, :1] > 0, x, x[:, :1] > 0, task="multi-label")
    return fedvote.simulate(nn.Sequential(mlp(1), last), data, FedAvg(), clients=2, rounds=1, loss=loss, device="cpu")


def test_a_sigmoid_before_a_loss_that_has_one_is_a_doubt() -> None:
    for loss in ("auto", BCE()):
        with pytest.warns(Doubt, match="the network ends in a sigmoid, but bce"):
            binary(nn.Sigmoid(), loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        binary(nn.Identity())
        binary(nn.Sigmoid(), F.binary_cross_entropy)


def test_a_run_is_the_same_where_gradients_are_off() -> None:
    expected = [snapshot.record["loss"] for snapshot in simulated(mlp())]
    with torch.no_grad():
        assert [snapshot.record["loss"] for snapshot in simulated(mlp())] == expected
    with torch.inference_mode(), pytest.raises(ModelError, match=r"torch\.inference_mode is on"):
        simulated(mlp())


def test_one_training_example_is_too_few_for_a_batch_norm() -> None:
    x = points().train.x
    data = fedvote.from_arrays(x[:1], [0], x, [0, 1] * 100, classes=["a", "b"])
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with pytest.raises(ConfigError, match="custom has one training example, expected 2 or more"):
        fedvote.simulate(network, data, FedAvg(), clients=1, batch=2)


def test_tokens_as_bytes_are_a_doubt() -> None:
    def network() -> nn.Module:
        class Tokens(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table, self.body, self.head = nn.Embedding(12, 4), nn.Linear(24, 8), nn.Linear(8, 3)

            def forward(self, x: Tensor) -> Tensor:
                return self.head(self.body(self.table(x.long()).flatten(1)).relu())  # type: ignore[no-any-return]

        return Tokens()

    data = points(tokens=True)
    x, y = data.train.x, data.train.y
    as_bytes = fedvote.from_arrays(x.byte(), y, x.byte(), y)
    with pytest.warns(Doubt, match="the embedding table gets rows 0 and 1 alone, since inputs of uint8 are divided"):
        fedvote.simulate(network(), as_bytes, FedAvg(), clients=2, rounds=1, batch=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedvote.simulate(network(), data, FedAvg(), clients=2, rounds=1, batch=20)
