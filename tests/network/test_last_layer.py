"""The last layer is found, however its weight is computed; what would hide it is named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fedvote
from fedvote import Doubt, FedAvg, FedVote
from fedvote.core import Dataset
from fedvote.errors import ModelError
from fedvote.method import Method
from fedvote.network.network import Network
from tests.network.small_networks import InPlace, OneHot, mlp, points, trained


@pytest.mark.parametrize("method", [FedVote(), FedAvg()])
def test_names_that_contradict_each_other_are_one_sentence(method: Method) -> None:
    with pytest.raises(ModelError, match=r"keep_float and vote both name 2.weight: leave it out of one"):
        fedvote.simulate(mlp(), points(), method, clients=2, keep_float=["2", "4"], vote=["2"])
    network = mlp()
    network[0].requires_grad_(False)
    with pytest.raises(ModelError, match=r"vote names '0', but 0.weight is frozen .*requires_grad_\(True\)"):
        fedvote.simulate(network, points(), method, clients=2, vote=["0"])


def test_vote_may_name_the_last_layer() -> None:
    assert "4.weight" in {slot.name for slot in Network(mlp(), vote=["4"], shape=(6,)).voted}


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 16), nn.Linear(16, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return 5 * F.linear(F.normalize(self.body(x).relu()), F.normalize(self.head.weight))


class Scaled(Normalised):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3, 1))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.body(x).relu(), self.scale * F.normalize(self.head.weight))


class Tokens(Normalised):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(12, 6), nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x.long())
        return self.head(self.body(self.mix(h, h, h, need_weights=False)[0].mean(1)))  # type: ignore[no-any-return]


def test_layers_whose_weights_are_multiplied_are_all_last() -> None:
    class Product(Normalised):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(2, 3, bias=False), nn.Linear(16, 2, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(self.body(x), self.head.weight + self.up.weight @ self.down.weight)

    with pytest.raises(ModelError, match=r"several last layers \(down, head, up\)"):
        Network(Product(), shape=(6,))


@pytest.mark.parametrize("make", [Normalised, OneHot, Scaled])
def test_the_last_layer_is_found_if_its_weight_is_computed_or_the_input_has_no_gradient(
    make: Callable[[], nn.Module],
) -> None:
    assert [slot.name for slot in Network(make(), shape=(6,)).voted] == ["body.weight"]


def test_the_last_layer_is_found_behind_tokens_and_attention() -> None:
    assert "head.weight" not in {slot.name for slot in Network(Tokens(), shape=(6,)).voted}


def test_finding_the_last_layer_changes_no_buffer() -> None:
    class Observing(InPlace):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("top", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.top.fill_(float(x.max()))  # type: ignore[operator]
            return self.body(x)  # type: ignore[no-any-return]

    with pytest.raises(ModelError, match="the forward pass changes top"):
        fedvote.simulate(Observing(), points(), clients=2)


def test_a_last_layer_that_starts_at_zero_and_stays_there_is_a_doubt() -> None:
    network = mlp()
    nn.init.zeros_(network.get_parameter("4.weight"))
    with pytest.warns(
        Doubt, match=r"0.weight, 2.weight got a gradient of zero .*: 4.weight starts at zero .*train_float"
    ):
        fedvote.simulate(network, points(), clients=2, batch=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (FedVote(lr=0.1, train_float=True, float_lr=0.03), FedAvg(lr=0.03)):
            assert trained(network, points(), method)[1] > 0.6


def test_a_frozen_last_layer_is_a_doubt_where_most_examples_have_one_class() -> None:
    """Behind a batch norm it cannot favour a class: a network was less accurate than a constant answer."""

    def some_of_class_1(count: int) -> Dataset:
        y = (torch.arange(100) < count).long()
        x = torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
        return fedvote.from_arrays(x, y, x, y)

    def network() -> nn.Sequential:
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def simulate(data: Dataset, method: Method, module: nn.Module, **options: Any) -> None:
        fedvote.simulate(module, data, method, clients=2, batch=10, **options)

    with pytest.warns(Doubt, match="90% of the training examples have class 0, .* train_float=True"):
        simulate(some_of_class_1(10), FedVote(), network())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(some_of_class_1(40), FedVote(), network())
        simulate(some_of_class_1(10), FedVote(train_float=True), network())
        simulate(some_of_class_1(10), FedVote(), network(), keep_float=[])
        simulate(some_of_class_1(10), FedVote(), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)))
        simulate(some_of_class_1(10), FedAvg(), network())


class Padded(Tokens):
    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x.long()) + self.place
        mixed = self.mix(h, h, h, key_padding_mask=x.long() == 0, need_weights=False)[0]
        return self.head(self.body(mixed.nan_to_num(0).mean(1)))  # type: ignore[no-any-return]


def test_weights_that_start_at_zero_and_stop_nothing_raise_no_doubt() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Doubt)
        fedvote.simulate(Padded(), points(tokens=True), clients=2, batch=20, vote=["mix.in_proj_weight"])
