"""A network is tried on the shape of the data before the first round."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedvote.errors import ModelError
from fedvote.network.network import Network
from tests.network.cases import CASES, Case, every_case


@every_case
def test_a_network_that_fits_the_data_passes_its_trial(case: Case) -> None:
    case.network().check(case.shape, 3)


def test_a_wrong_input_size_is_refused_naming_the_layer() -> None:
    network = CASES["conv2d"].network()
    with pytest.raises(ModelError, match=r"fails at layer '6' on inputs of shape \(1, 12, 12\)"):
        network.check((1, 12, 12), 3)
    with pytest.raises(ModelError, match=r"fails at layer '0' on inputs of shape \(3, 8, 8\)"):
        network.check((3, 8, 8), 3)


@pytest.mark.parametrize(
    ("network", "shape", "words"),
    [
        (nn.Linear(12, 2), (10,), r"layer takes 12 \(in_features\), but the data have 10: set in_features to 10"),
        (nn.Sequential(nn.Linear(10, 8), nn.Linear(9, 2)), (10,), r"takes 9 \(in_features\), but it gets 8"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 2)), (3, 8, 8), r"1 \(in_channels\), .* 3"),
        (nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(9), nn.Linear(8, 2)), (10,), r"9 \(num_features\), .* 8"),
        (nn.Sequential(nn.Linear(4, 10), nn.LSTM(12, 8), nn.Linear(8, 2)), (3, 4), r"12 \(input_size\), .* 10"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_wrong_width_is_refused_with_the_width_that_the_layer_takes_and_the_one_that_it_gets(
    network: nn.Module, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        Network(network, keep_float=[]).check(shape, 2)


def test_what_a_network_gives_instead_of_a_tensor_has_its_article() -> None:
    for output, words in ((3, "gives an int for"), (None, "gives nothing for"), ({}, "gives a dict for")):
        network = Network(Forward(lambda _, output=output: output), keep_float=[])  # type: ignore[misc]
        with pytest.raises(ModelError, match=words):
            network.check((4,), 3)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(5), nn.BatchNorm1d(4)], ids=repr)
def test_a_batch_norm_that_does_not_fit_is_refused(norm: nn.Module) -> None:
    network = Network(nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.Flatten(), nn.Linear(144, 3)))
    with pytest.raises(ModelError, match="fails at layer '1'"):
        network.check((1, 8, 8), 3)


def test_an_embedding_that_gets_floats_is_told_to_take_whole_numbers() -> None:
    network = Network(nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 8), nn.Linear(8, 2)))
    with pytest.raises(ModelError, match=r"fails at layer '0' .*; inputs come as floats: give the embedding x.long"):
        network.check((3,), 2)


def test_a_wrong_number_of_classes_is_refused_naming_both() -> None:
    with pytest.raises(ModelError, match=r"outputs of shape \(3,\).*the data has 10 classes.*last layer"):
        CASES["conv2d"].network().check((1, 8, 8), 10)


class Forward(nn.Module):
    """Two layers, and whatever is done to their output."""

    def __init__(self, then: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.layers, self.then = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), then

    def forward(self, x: Tensor) -> object:
        return self.then(self.layers(x))


def fails_without_a_word(y: Tensor) -> Tensor:
    raise AssertionError


@pytest.mark.parametrize(
    ("then", "saying"),
    [
        (lambda y: F.dropout(y, 0.5), "dropout in evaluation as well.*training=self.training"),
        (lambda y: y + torch.randn_like(y), "randn_like .*draws random numbers outside the run's seed"),
        (lambda y: y[:, 7], "index 7 is out of bounds"),
        (fails_without_a_word, "AssertionError"),
        (lambda y: (y, y), r"gives 2 outputs as a tuple .* expected one tensor \(3,\): return one of them"),
    ],
    ids=["dropout always", "random", "index", "no message", "two outputs"],
)
def test_a_forward_that_cannot_be_trained_is_refused(then: Callable[[Tensor], object], saying: str) -> None:
    with pytest.raises(ModelError, match=saying):
        Network(Forward(then)).check((4,), 3)


@pytest.mark.parametrize(
    ("then", "stackable"), [(lambda y: y if y.sum() > -1e9 else -y, False), (lambda y: -y, True)], ids=["flow", "plain"]
)
def test_control_flow_that_depends_on_data_trains_client_by_client(
    then: Callable[[Tensor], object], stackable: bool
) -> None:
    network = Network(Forward(then))
    network.check((4,), 3)
    assert network.trial.stackable is stackable


class Reused(nn.Module):
    """One batch norm at two places: there would be statistics for the second alone."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.norm(self.b(self.norm(self.a(x)))))
        return out


def test_a_batch_norm_that_runs_twice_is_refused() -> None:
    with pytest.raises(ModelError, match="batch norm norm runs more than once"):
        Network(Reused()).check((4,), 3)


def test_images_with_their_channels_last_are_told_how_to_be_given() -> None:
    network = Network(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 3)))
    with pytest.raises(ModelError, match=r"layer '0' .*; images come as \(channels, height, width\): give .*transpose"):
        network.check((8, 8, 3), 3)


def test_one_output_without_its_axis_is_told_to_keep_it() -> None:
    network = Network(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1), nn.Flatten(0)))
    with pytest.raises(ModelError, match=r"outputs of shape \(\) .* return \(n, 1\), without squeeze"):
        network.check((4,), 1, "regression")
