"""Networks and weights that cannot train as they are get one sentence, before the first round."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.checkpoint import checkpoint

import fedvote
from fedvote import Doubt, FedAvg, FedVote
from fedvote.errors import ConfigError, ModelError
from fedvote.method import Method
from fedvote.methods import Eden
from fedvote.network.network import Network
from tests.network.small_networks import OneHot, mlp, points, trained


@pytest.mark.parametrize("method", [FedVote(), FedAvg(), Eden()])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["2.weight", "4.bias"])
@pytest.mark.parametrize("given", [True, False], ids=["module", "state dict"])
def test_given_weights_that_are_no_numbers_are_named(method: Method, value: float, name: str, given: bool) -> None:
    network = mlp()
    with torch.no_grad():
        network.get_parameter(name).view(-1)[1] = value
    module, start = (network, "given") if given else (mlp(), network.state_dict())
    with pytest.raises(ConfigError, match=rf'weights of {name} have NaN or infinite .* start="seed"'):
        fedvote.simulate(module, points(), method, clients=2, start=start)


def test_weights_too_large_to_be_sent_are_named() -> None:
    network = mlp()
    with torch.no_grad():
        network.get_parameter("4.weight").mul_(1e12)
    with pytest.raises(ConfigError, match=r"weights of 4.weight have .* beyond ±1.07e\+09.*start=\"seed\""):
        fedvote.simulate(network, points(), FedAvg(), clients=2)


def test_a_refusal_names_the_matrices_that_can_be_voted_on() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(6, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.cell(x))  # type: ignore[no-any-return]

    with pytest.raises(ModelError, match=r"name others in vote: cell.weight_ih, cell.weight_hh$"):
        fedvote.simulate(Cell(), points(), clients=2)
    assert trained(Cell(), points(), FedVote(lr=0.1), vote=["cell.weight_ih", "cell.weight_hh"])[1] > 0.5


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1  # type: ignore[operator, assignment]
        return self.body(x)  # type: ignore[no-any-return]


class Averaging(Counting):
    mean: Tensor | float = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.body(x - self.mean)  # type: ignore[no-any-return]


class Recomputed(Counting):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.body, x, use_reentrant=False)  # type: ignore[no-any-return]


class Keeping(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.last = self.body(x)
        return self.last  # type: ignore[no-any-return]


def kept() -> nn.Module:
    network = Keeping()
    network(torch.zeros(2, 6))
    return network


class OfDict(Counting):
    def forward(self, x: dict[str, Tensor]) -> Tensor:  # type: ignore[override]
        return self.body(x["inputs"])  # type: ignore[no-any-return]


class Wrapped(nn.Module):
    def forward(self, x: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=x)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(nn.Linear(6, 8))


class Detached(Counting):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).detach()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Counting, "the forward pass changes calls, which clients would share"),
        (lambda: nn.Sequential(spectral_norm(nn.Linear(6, 3))), r"the forward pass changes 0.parametrizations.* _?"),
        (OfDict, "it is called with one tensor, a batch of inputs: wrap a network that takes a dict"),
        (Detached, "the network's output has no gradient, so nothing can train"),
        (Averaging, "gives other outputs .* called again, so it keeps numbers in an attribute"),
        (Recomputed, "gradient cannot be computed .*: call its layers without torch.utils.checkpoint"),
        (kept, "the network cannot be copied .*: keep no outputs in its attributes"),
        (lambda: nn.Sequential(nn.Flatten(), nn.Identity()), "has no weights, so nothing can train: add a layer"),
        (
            lambda: nn.Sequential(scripted(), nn.Linear(8, 3)),
            "0 is a RecursiveScriptModule, .*: use the nn.Module that",
        ),
        (
            lambda: nn.Sequential(mlp(), Wrapped()),
            "gives a SimpleNamespace .* expected one tensor .*: return that tensor",
        ),
        (lambda: nn.DataParallel(mlp()), "the network itself is a DataParallel, .*: use its .module"),
    ],
)
def test_a_network_that_cannot_train_gets_one_sentence(make: Callable[[], nn.Module], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as refusal:
        fedvote.simulate(make(), points(), FedAvg())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("rows", "fits"), [(12, True), (11, False)])
def test_a_token_outside_an_embedding_is_found_before_training(rows: int, fits: bool) -> None:
    network = OneHot()
    network.forward = lambda x: network.head(network.table(x.long()).mean(1))  # type: ignore[method-assign, operator]
    network.table = nn.Embedding(rows, 16)
    if fits:
        fedvote.simulate(network, points(tokens=True), FedAvg(), clients=2, batch=8)
    else:
        with pytest.raises(ModelError, match=r"examples of the training data .* from 0 to 11: an embedding"):
            fedvote.simulate(network, points(tokens=True), FedAvg(), clients=2, batch=8)


def test_float64_weights_that_are_rounded_are_named() -> None:
    network = mlp().double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Network(network, start="given")  # all of them are float32 numbers
    nn.init.constant_(next(network.parameters()), 0.1)
    with pytest.warns(Doubt, match=r"0.weight: float64 weights are rounded to float32"):
        Network(network, start="given")
