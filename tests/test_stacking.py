"""A call a client is the same mathematics as one call for all: values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedvote import stacking
from fedvote.core import Key
from fedvote.stacking import StackedConv2d, StaticBatchNorm, by_client, prepare

CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stride": {"stride": 2},
    "padding": {"padding": (1, 2)},
    "same": {"padding": "same"},
    "dilation": {"dilation": 2},
    "groups": {"groups": 2},
    "all": {"stride": (1, 2), "padding": 1, "dilation": (2, 1), "groups": 2},
}
every_convolution = pytest.mark.parametrize("options", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=Key(seed).torch("test"), dtype=torch.float64).requires_grad_()


def batch_norm(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True, eps=1e-3)


def assert_same_values_and_gradients(got: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    torch.testing.assert_close(got, expected)
    direction = torch.randn(expected.shape, generator=Key(9).torch("direction"), dtype=expected.dtype)
    direction = direction.to(expected.device)
    gradients = torch.autograd.grad(got, inputs, direction)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, inputs, direction))
    assert all(gradient.abs().max() > 0 for gradient in gradients)


@every_convolution
def test_convolution_by_client_is_each_clients_own(options: dict[str, Any]) -> None:
    conv = StackedConv2d(4, 6, 3, bias=False, dtype=torch.float64, **options)
    x_KB, weight_K = normal(3, 2, 4, 7, 8), normal(3, *conv.weight.shape, seed=1)
    got = vmap(lambda x, w: by_client(conv._convolve, x, w))(x_KB, weight_K)
    own = [F.conv2d(x, w, None, **options) for x, w in zip(x_KB, weight_K, strict=True)]
    assert_same_values_and_gradients(got, torch.stack(own), [x_KB, weight_K])


@pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (1, 2)])
def test_convolution_by_client_takes_any_axis_and_what_all_share(in_dims: tuple[int | None, int | None]) -> None:
    conv = StackedConv2d(2, 5, 3, bias=False, dtype=torch.float64)
    sizes = [[2, 2, 6, 6], [5, 2, 3, 3]]
    for shape, dim in zip(sizes, in_dims, strict=True):
        if dim is not None:
            shape.insert(dim, 3)
    x, weight = normal(*sizes[0]), normal(*sizes[1], seed=1)

    def stacked(op: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        return vmap(op, in_dims=in_dims)(x, weight)

    assert_same_values_and_gradients(
        stacked(lambda x, w: by_client(conv._convolve, x, w)), stacked(F.conv2d), [x, weight]
    )


def test_batch_norm_by_client_is_each_clients_own() -> None:
    scale = torch.tensor([1.0, 1000.0, 1e-2], dtype=torch.float64).view(3, 1, 1, 1, 1)
    x_KB = (normal(3, 4, 2, 5, 5) * scale + 10 * scale).detach().requires_grad_()
    norm = StaticBatchNorm(eps=1e-3)
    got = vmap(lambda x: by_client(norm._normalise, x))(x_KB)
    assert_same_values_and_gradients(got, torch.stack([batch_norm(x) for x in x_KB]), [x_KB])


@every_convolution
def test_the_gradient_of_one_client_without_vmap_is_right(options: dict[str, Any]) -> None:
    conv = StackedConv2d(2, 4, 3, bias=False, dtype=torch.float64, **options)
    x, weight = normal(2, 2, 5, 5), normal(*conv.weight.shape, seed=1)
    assert torch.autograd.gradcheck(lambda x, w: by_client(conv._convolve, x, w), (x, weight))
    assert_same_values_and_gradients(
        by_client(conv._convolve, x, weight), F.conv2d(x, weight, None, **options), [x, weight]
    )


def test_the_gradient_of_batch_norm_without_vmap_is_right() -> None:
    norm = StaticBatchNorm(eps=1e-3)
    assert torch.autograd.gradcheck(lambda x: by_client(norm._normalise, x), (normal(3, 2, 2, 2),))


def test_by_client_calls_its_operation_once_a_client() -> None:
    shapes: list[tuple[int, ...]] = []

    def double(x: Tensor) -> Tensor:
        shapes.append(tuple(x.shape))
        return 2 * x

    x_KB = normal(3, 2, 5)
    assert torch.equal(vmap(lambda x: by_client(double, x))(x_KB), 2 * x_KB)
    assert shapes == [(2, 5)] * 3


@every_convolution
@pytest.mark.parametrize("bias", [True, False])
def test_a_stacked_convolution_is_torchs_on_a_cpu(options: dict[str, Any], bias: bool) -> None:
    conv = StackedConv2d(4, 6, 3, bias=bias, dtype=torch.float64, **options)
    x = normal(2, 4, 7, 8)
    assert torch.equal(conv(x), F.conv2d(x, conv.weight, conv.bias, **options))


def test_static_batch_norm_is_the_papers_formula() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 10.0], [8.0, 40.0]])
    # (x - E[x]) / sqrt(Var[x] + eps), the variance that of the batch
    mean, variance = torch.tensor([4.0, 20.0]), torch.tensor([26 / 3, 200.0])
    torch.testing.assert_close(StaticBatchNorm(eps=0.5)(x), (x - mean) / (variance + 0.5).sqrt())


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 4), (6, 3, 4, 4), (6, 3, 2, 2, 2)])
def test_static_batch_norm_takes_any_number_of_dimensions_and_keeps_no_state(shape: tuple[int, ...]) -> None:
    norm, x = StaticBatchNorm(eps=1e-3), normal(*shape)
    for _ in range(2):
        assert torch.equal(norm(x), batch_norm(x))
        norm(100 * x)
    assert not list(norm.parameters()) and not list(norm.buffers())
    assert torch.equal(norm.eval()(x), batch_norm(x))


def test_prepare_replaces_layers_at_every_depth_and_keeps_their_options() -> None:
    shared = nn.BatchNorm2d(4, eps=0.25)
    module = nn.Sequential(nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), shared), nn.Conv1d(4, 4, 1), shared, shared)
    weight = module.get_parameter("0.0.weight")
    prepare(module)
    conv = module.get_submodule("0.0")
    assert type(conv) is StackedConv2d and conv.stride == (2, 2)
    assert module.get_parameter("0.0.weight") is weight
    assert type(module[1]) is nn.Conv1d
    for norm in (module.get_submodule("0.1"), module[2], module[3]):
        assert type(norm) is StaticBatchNorm and norm.eps == 0.25


def test_prepare_leaves_a_users_own_convolution_alone() -> None:
    class Mine(nn.Conv2d):
        pass

    module = nn.Sequential(Mine(1, 2, 3))
    prepare(module)
    assert type(module[0]) is Mine


@needs_gpu
@every_convolution
def test_a_stacked_convolution_is_torchs_on_a_gpu(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacking, "LARGE_OUTPUT", 0)
    fast = StackedConv2d(4, 6, 3, dtype=torch.float64, device="cuda", **options)
    slow = nn.Conv2d(4, 6, 3, dtype=torch.float64, device="cuda", **options)
    x_KB, weight_K, bias_K = (
        tensor.detach().cuda().requires_grad_()
        for tensor in (normal(3, 2, 4, 7, 8), normal(3, *fast.weight.shape, seed=1), normal(3, 6, seed=2))
    )

    def stacked(module: nn.Module) -> Tensor:
        def one(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            y: Tensor = functional_call(module, {"weight": w, "bias": b}, (x,))
            return y

        return vmap(one)(x_KB, weight_K, bias_K)

    assert_same_values_and_gradients(stacked(fast), stacked(slow), [x_KB, weight_K, bias_K])


@needs_gpu
def test_static_batch_norm_by_client_is_each_clients_own_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacking, "LARGE_OUTPUT", 0)
    x_KB = normal(3, 4, 2, 5, 5).detach().cuda().requires_grad_()
    own = torch.stack([batch_norm(x) for x in x_KB])
    assert_same_values_and_gradients(vmap(StaticBatchNorm(eps=1e-3))(x_KB), own, [x_KB])
