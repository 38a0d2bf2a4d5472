"""Layers as matrix products: the same function, the same gradients, the same names."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedvote import FedAvg, FedVote
from fedvote.method import Method
from fedvote.models import MODELS
from fedvote.network.network import Network
from fedvote.network.products import Patches, as_products
from fedvote.training.descent import parts_of
from fedvote.training.optimizer import optimizer_of
from fedvote.training.stack import Stack
from tests.toy import batches, module, scaled

CONVOLUTIONS: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": 3, "padding": 1, "bias": False},
    {"kernel_size": 5, "padding": "same"},
    {"kernel_size": (2, 4), "padding": "same", "dilation": (3, 1)},  # more after than before
    {"kernel_size": 3, "stride": 2, "padding": (2, 1)},
    {"kernel_size": (3, 1), "stride": (1, 3), "dilation": 2, "padding": "valid"},
    {"kernel_size": 1},
]


def agree(layer: nn.Module, x: torch.Tensor) -> None:
    """Outputs, and gradients of the inputs and of all parameters."""
    results = []
    for kind in (layer, as_products(layer, in_bfloat16=False)):
        inputs = x.clone().requires_grad_()
        parameters = {name: value.detach().clone().requires_grad_() for name, value in kind.named_parameters()}
        y = functional_call(kind, parameters, (inputs,))
        weigh = torch.linspace(-1, 1, y.numel()).view_as(y)  # so that no place is like another
        results.append([y, *torch.autograd.grad((weigh * y).sum(), [inputs, *parameters.values()])])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")  # which is the one to compare with
@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
def test_a_convolution_is_the_product_of_patches_and_weights(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 6, **options)
    assert isinstance(as_products(layer, in_bfloat16=False), Patches)
    agree(layer, torch.randn(4, 3, 11, 9))


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 4, 5)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_a_product_for_inputs_of_any_shape(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    agree(nn.Linear(5, 3, bias=bias), torch.randn(shape))


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), nn.Conv1d(4, 4, 3)],
    ids=str,
)
def test_what_cannot_be_rewritten_stays(layer: nn.Module) -> None:
    assert type(as_products(layer, in_bfloat16=False)) is type(layer)


def test_a_layer_that_is_used_twice_stays_one() -> None:
    layer = nn.Linear(4, 4)
    agree(nn.Sequential(layer, nn.ReLU(), layer), torch.randn(3, 4))


@pytest.mark.parametrize("name", MODELS)
def test_networks_have_the_same_loss_and_gradients(name: str) -> None:
    network = Network(MODELS[name]((3, 16, 16), 10))
    x, y = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1)), torch.arange(4)
    results = []
    for kind in (network, network.as_products()):
        weights = [network.start.voted.clone().requires_grad_(), network.start.floats.clone().requires_grad_()]
        loss = kind.loss(weights[0], weights[1], x, y)
        results.append([loss, *torch.autograd.grad(loss, weights)])
    for expected, found in zip(*results, strict=True):
        # an activation near 0 may fall on its other side, which changes some gradients a little
        assert (found - expected).norm() <= 0.01 * expected.norm()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[torch.fx.GraphModule]:
    """Every graph that is compiled, which here is left as it is."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Any:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    torch.compiler.reset()
    return graphs


def start_of(method: Method, network: Network) -> list[torch.Tensor]:
    """Of three clients."""
    vectors = (network.start.voted, network.start.floats)[: 2 if isinstance(method, FedAvg) else 1]
    share = [torch.tensor([0.5])] if getattr(method, "sign_share", 0) else []
    return [vector.expand(3, -1) for vector in (*vectors, *share)]


@pytest.mark.parametrize("method", [FedAvg(), FedVote(), FedVote(sign_share=0.5, sign_rounding="random")], ids=str)
@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
def test_a_compiled_stack_is_compiled_and_has_the_same_gradients(
    method: Method, together: bool, compiled: list[torch.fx.GraphModule]
) -> None:
    """A function that is compiled first and given to vmap after that is run as it is."""
    network = Network(module())
    start = start_of(method, network)
    stacks = [
        Stack(partial(method.objective, kind), start, together, compiled=kind is not network)
        for kind in (network, network.as_products())
    ]
    for stack in stacks:
        stack.gradients(*batches(scaled(), [0, 1, 2]).at(0))
    assert len(compiled) == 1
    for expected, found in zip(*(stack.leaves for stack in stacks), strict=True):
        if found.shape[-1] == 1:  # a constant of the round
            assert found.grad is None
            continue
        assert found.grad is not None and found.grad.abs().max() > 0
        torch.testing.assert_close(found.grad, expected.grad)


@pytest.mark.parametrize(
    "method", [FedAvg(0.1, "SGD"), FedVote(0.1, "SGD"), FedVote(0.1, "SGD", sign_share=0.5)], ids=str
)
def test_a_stack_that_takes_its_steps_takes_those_of_the_optimiser_in_one_graph(
    method: Method, compiled: list[torch.fx.GraphModule]
) -> None:
    network, drawn = Network(module()), batches(scaled(), [0, 1, 2], steps=3)
    start, ended = start_of(method, network), []
    for rate in (None, optimizer_of(method).plain_rate):
        sizes, alone = parts_of(method, network, start), rate is not None
        stack = Stack(partial(method.objective, network), start, compiled=alone, sizes=sizes, rate=rate)
        optimizer = optimizer_of(method).make(stack.leaves)
        for step in range(3):
            stack.gradients(*drawn.at(step))
            if not alone:
                optimizer.step()
        ended.append([torch.empty_like(rows) for rows in start])
        stack.take(slice(None), ended[-1])
    assert len(compiled) == 1
    for expected, found, before in zip(*ended, start, strict=True):
        torch.testing.assert_close(found, expected)
        assert not torch.allclose(found, before) or before.shape[1] == 1


def test_only_plain_gradient_descent_has_a_plain_rate() -> None:
    assert optimizer_of(FedAvg(0.1, "SGD")).plain_rate == 0.1
    assert optimizer_of(FedAvg(0.1, "Adam")).plain_rate is None
    assert optimizer_of(FedAvg(0.1, "SGD", {"momentum": 0.9})).plain_rate is None
