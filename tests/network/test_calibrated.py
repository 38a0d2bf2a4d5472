"""Batch-norm statistics that are measured, and the ordinary module that is handed out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.core import State, Weights
from fedvote.network.network import Network
from fedvote.network.static_batch_norm import StaticBatchNorm
from tests.network.cases import CASES, Case, as_torch_runs_it, every_case, every_case_with_norm, normal, some_weights


def calibrated_on(case: Case, count: int = 7) -> tuple[Network, Weights, Tensor, State]:
    network, x = case.network(), normal(count, *case.shape, seed=8) * 3 + 1
    weights = some_weights(network)
    return network, weights, x, network.calibrate(weights, x)


@every_case_with_norm
def test_calibration_measures_what_torch_measures(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    module = as_torch_runs_it(case, network, weights)
    module(x)
    expected = {name: value for name, value in module.named_buffers()}
    assert statistics.keys() == expected.keys()
    for name, value in statistics.items():
        torch.testing.assert_close(value, expected[name])


@every_case_with_norm
def test_calibration_forgets_what_it_measured_before(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    first = {name: value.clone() for name, value in statistics.items()}
    other = network.calibrate(weights, 100 * x + 7)
    again = network.calibrate(weights, x)
    for name, value in first.items():
        assert torch.equal(statistics[name], value) and torch.equal(again[name], value)
        assert "num" in name or not torch.equal(other[name], value)


@every_case_with_norm
def test_a_calibrated_network_differs_from_the_batch_by_the_unbiased_variance_only(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    values: dict[str, int] = {}  # how many each channel's variance is of
    module = as_torch_runs_it(case, network, weights)
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm):
            layer.register_forward_pre_hook(lambda m, a, n=name: values.update({n: a[0][:, 0].numel()}))
    by_batch = module(x)
    biased = {
        name: value * (1 - 1 / values[name.removesuffix(".running_var")]) if name.endswith("running_var") else value
        for name, value in statistics.items()
    }
    torch.testing.assert_close(network.calibrated(weights, biased, x), by_batch, atol=1e-4, rtol=1e-4)


def test_the_same_batch_norm_in_two_slots_has_statistics_for_each() -> None:
    norm = nn.BatchNorm1d(4)
    network = Network(nn.Sequential(nn.Linear(4, 4), norm, nn.Linear(4, 4), norm, nn.Linear(4, 3)))
    network.check((4,), 3)
    assert [slot.name for slot in network.floats] == ["0.bias", "2.bias", "4.weight", "4.bias"]
    weights, x = some_weights(network), normal(4096, 4)
    statistics = network.calibrate(weights, x)
    assert {"1.running_mean", "3.running_mean"} < statistics.keys()
    expected = network(weights.voted, weights.floats, x)
    torch.testing.assert_close(network.calibrated(weights, statistics, x), expected, atol=0.01, rtol=0.01)


class PlainNorm(nn.BatchNorm1d):
    def __init__(self, width: int) -> None:
        super().__init__(width)


def test_a_subclass_of_batch_norm_is_a_batch_norm() -> None:
    network = Network(nn.Sequential(nn.Linear(4, 4), PlainNorm(4), nn.Linear(4, 3)))
    network.check((4,), 3)
    assert network.calibrate(network.start, normal(8, 4)).keys() == {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    }


@every_case
def test_the_module_handed_out_computes_what_the_calibrated_network_does(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    module = network.module(weights, statistics)
    expected = network.calibrated(weights, statistics, x)
    torch.testing.assert_close(module(x), expected)
    one_by_one = torch.cat([module(x[i : i + 1]) for i in range(len(x))])
    torch.testing.assert_close(one_by_one, expected, atol=1e-4, rtol=1e-4)


@every_case
def test_the_module_handed_out_is_an_ordinary_module_with_votes_for_weights(case: Case) -> None:
    network = case.network()
    votes_D = torch.where(normal(network.D) > 0, 1, -1).to(torch.int8)
    weights = Weights(votes_D, network.start.floats)
    module = network.module(
        weights, network.calibrate(Weights(votes_D.float(), network.start.floats), normal(4, *case.shape))
    )
    assert type(module) is type(case.make())
    assert not any(layer.training or isinstance(layer, StaticBatchNorm) for layer in module.modules())
    assert not any(p.requires_grad for p in module.parameters())
    assert {n for n, _ in module.named_parameters()} == {slot.name for slot in (*network.voted, *network.floats)}
    for slot in network.voted:
        weight = module.get_parameter(slot.name)
        assert weight.dtype == torch.float32 and set(weight.flatten().tolist()) <= {-1.0, 1.0}
    flat = torch.cat([module.get_parameter(slot.name).flatten() for slot in network.voted])
    assert torch.equal(flat, votes_D.float())


def test_the_module_handed_out_is_the_callers_to_change() -> None:
    network, weights, x, statistics = calibrated_on(CASES["conv2d"])
    expected = network.calibrated(weights, statistics, x)
    before = weights.voted.clone()
    module = network.module(weights, statistics)
    for parameter in network.module(weights, statistics).parameters():
        parameter.zero_()
    torch.testing.assert_close(module(x), expected)
    assert torch.equal(weights.voted, before)
    assert torch.equal(network.calibrated(weights, statistics, x), expected)
