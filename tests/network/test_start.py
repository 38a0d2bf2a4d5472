"""Where training starts, and what tells two networks apart."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from fedvote.network.network import Network
from fedvote.network.static_batch_norm import StaticBatchNorm
from tests.network.cases import CASES, Residual, normal, some_weights


def test_the_start_depends_on_the_seed_alone() -> None:
    def start(seed: int, made_with: int) -> Tensor:
        torch.manual_seed(made_with)
        network = Network(Residual(), seed)
        return torch.cat([network.start.voted, network.start.floats])

    before = torch.get_rng_state()
    try:
        assert torch.equal(start(0, made_with=1), start(0, made_with=2))
        assert not torch.equal(start(0, made_with=1), start(1, made_with=1))
    finally:
        torch.set_rng_state(before)


def test_the_start_leaves_the_global_generator_alone() -> None:
    module = Residual()
    before = torch.get_rng_state()
    Network(module).check((2, 6, 6), 3)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_start_has_kaiming_weights_and_no_bias() -> None:
    network = Network(nn.Sequential(nn.Conv2d(8, 50, 5), nn.Flatten(), nn.Linear(200, 100)), keep_float=("2",))
    assert network.start.voted.std().item() == pytest.approx((2 / (8 * 25)) ** 0.5, rel=0.05)
    biases = [slot for slot in network.floats if slot.name.endswith("bias")]
    assert [slot.name for slot in biases] == ["0.bias", "2.bias"]
    assert all((network.start.floats[slot.start : slot.stop] == 0).all() for slot in biases)


def test_standardised_layers_have_deviation_one_each() -> None:
    network = CASES["conv2d"].network()
    wide = torch.cat([torch.tensor([3.0, -3.0]).repeat(18), 0.01 * network.start.voted[36:]])
    flat = network.standardise(wide)
    assert flat[:36].tolist() == [1.0, -1.0] * 18
    assert flat[36:].std(correction=0).item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(flat[36:] / flat[36], network.start.voted[36:] / network.start.voted[36])


@pytest.mark.parametrize("training", [True, False])
def test_the_module_given_is_not_changed(training: bool) -> None:
    module = Residual().double().train(training)
    before = copy.deepcopy(module.state_dict())
    network = Network(module)
    network.check((2, 6, 6), 3)
    weights = some_weights(network)
    network.module(weights, network.calibrate(weights, normal(4, 2, 6, 6)))
    after = module.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert all(layer.training is training for layer in module.modules())
    assert all(p.requires_grad and p.dtype == torch.float64 for p in module.parameters())
    assert not any(isinstance(layer, StaticBatchNorm) for layer in module.modules())


def test_a_network_for_another_device_is_another_network() -> None:
    network = CASES["residual"].network()
    other = network.to("cpu")
    assert other is not network and other.fingerprint == network.fingerprint
    assert torch.equal(other.start.voted, network.start.voted)


def test_the_fingerprint_tells_networks_apart_by_names_shapes_and_votes() -> None:
    def made(
        width: int = 4, name: str = "a", classes: int = 2, keep_float: tuple[str, ...] | None = None, seed: int = 0
    ) -> bytes:
        module = nn.ModuleDict({name: nn.Linear(5, width), "out": nn.Linear(4, 3), "last": nn.Linear(3, classes)})
        return Network(module, seed, keep_float).fingerprint

    assert made() == made(seed=1) and len(made()) == 8
    assert len({made(), made(width=5), made(name="b"), made(classes=9), made(keep_float=("out",))}) == 5
