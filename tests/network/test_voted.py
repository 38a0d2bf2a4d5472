"""Which weights are voted on."""

from __future__ import annotations

import re

import pytest
from torch import nn

from fedvote.errors import ModelError
from fedvote.models import MODELS
from fedvote.network.network import Network
from fedvote.network.voted_weights import votable_weights
from tests.network.cases import Tied


def layers(*names: str) -> nn.Module:
    return nn.ModuleDict({name: nn.Conv2d(1, 1, 1) if "conv" in name else nn.Linear(1, 1) for name in names})


@pytest.mark.parametrize(
    ("names", "keep_float", "voted"),
    [
        (("conv1", "conv2", "fc1", "fc2"), None, {"conv1", "conv2", "fc1"}),
        (("fc1", "fc2", "conv1"), None, {"fc1", "conv1"}),  # the last linear layer, not the last layer
        (("conv1", "conv2"), None, {"conv1"}),
        (("conv1", "conv2", "fc1", "fc2"), (), {"conv1", "conv2", "fc1", "fc2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("conv1",), {"conv2", "fc1", "fc2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("fc*",), {"conv1", "conv2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("conv?", "fc2"), {"fc1"}),
    ],
)
def test_voted_are_all_weights_but_those_kept_float(
    names: tuple[str, ...], keep_float: tuple[str, ...] | None, voted: set[str]
) -> None:
    assert votable_weights(layers(*names), keep_float) == {f"{name}.weight" for name in voted}


def test_a_pattern_that_fits_no_layer_is_refused_naming_the_layers() -> None:
    with pytest.raises(ModelError, match=r"'fc9'.*there are: conv1, fc1, fc2"):
        Network(layers("conv1", "fc1", "fc2"), keep_float=("fc1", "fc9"))


@pytest.mark.parametrize("keep_float", [None, ("decode",), ("encode",)])
def test_a_weight_shared_with_a_float_layer_is_float(keep_float: tuple[str, ...] | None) -> None:
    module = Tied()
    module.out = nn.Identity()  # type: ignore[assignment]
    with pytest.raises(ModelError, match="no weights to vote on"):
        Network(module, keep_float=keep_float)
    assert [slot.name for slot in Network(module, keep_float=()).voted] == ["encode.weight"]


@pytest.mark.parametrize("keep_float", [("*",), ("conv1", "fc?")])
def test_a_network_whose_user_keeps_all_of_it_float_is_told_so(keep_float: tuple[str, ...]) -> None:
    said = re.escape(", ".join(map(repr, keep_float)))
    advice = "name fewer layers, or take a float method, such as FedAvg"
    with pytest.raises(ModelError, match=rf"^keep_float names {said}, which leaves no weights to vote on: {advice}$"):
        Network(layers("conv1", "fc1", "fc2"), keep_float=keep_float)
    assert Network(layers("conv1", "fc1", "fc2"), keep_float=keep_float, votes=False).D > 0


@pytest.mark.parametrize("module", [nn.Linear(3, 2), nn.Sequential(nn.LayerNorm(3))])
def test_a_model_without_votable_weights_is_refused(module: nn.Module) -> None:
    with pytest.raises(ModelError, match=f"{type(module).__name__} has no weights to vote on.*keep_float"):
        Network(module)


@pytest.mark.parametrize(
    ("name", "shape", "D", "F"),
    [
        ("lenet5", (1, 28, 28), 25 * 32 + 25 * 32 * 64 + 49 * 64 * 512, 512 * 10),
        ("vgg7", (3, 32, 32), 12_963_200, 1024 * 10),
    ],
)
def test_the_papers_networks_have_the_papers_sizes(name: str, shape: tuple[int, ...], D: int, F: int) -> None:
    network = Network(MODELS[name](shape, 10))
    assert (network.D, network.F) == (D, F)
    if name == "lenet5":
        assert D == 1_657_632
