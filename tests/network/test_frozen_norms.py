"""A batch norm that the user froze and put into evaluation mode keeps its running statistics, everywhere."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import fedvote
from fedvote import ConfigError, FedAvg, FedVote, ModelError
from fedvote.core import Dataset
from fedvote.method import Method
from fedvote.network.network import Network
from tests.network.small_networks import points


class Pretrained(nn.Module):
    """A network whose first layers have seen data, far from zero, before the federation."""

    def __init__(self, affine: bool = True) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, affine=affine), nn.ReLU())
            self.head = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
            for _ in range(20):
                self.backbone(torch.randn(50, 6) + 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))  # type: ignore[no-any-return]


def frozen(affine: bool = True) -> Pretrained:
    network = Pretrained(affine)
    network.backbone.requires_grad_(False).eval()
    return network


def features(data: Dataset) -> Dataset:
    """What the frozen layers make of the data."""
    backbone = frozen().backbone
    train, test = (backbone(examples.x) for examples in (data.train, data.test))
    return fedvote.from_arrays(train, data.train.y, test, data.test.y)


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedAvg(lr=0.01)], ids=["fedvote", "fedavg"])
def test_frozen_layers_train_the_rest_as_their_features_would(method: Method) -> None:
    def run(network: nn.Module, data: Dataset) -> dict[str, float]:
        made = fedvote.simulate(
            network, data, method, clients=4, rounds=3, steps=5, batch=10, partition="shards", device="cpu"
        )
        *_, last = made
        return {name: last.record[name] for name in ("accuracy", "accuracy_calibrated", "loss")}

    assert run(frozen(), points()) == pytest.approx(run(frozen().head, features(points())), rel=1e-4)


def test_statistics_stay_to_the_bit_and_are_in_the_file(tmp_path: Path) -> None:
    run = fedvote.simulate(frozen(), points(), FedVote(), clients=2, rounds=2, steps=3, batch=10, device="cpu")
    *_, last = run
    path = fedvote.save_network(tmp_path, run.federation, last)
    for module in (frozen(), Pretrained().eval(), Pretrained()):  # whatever of it is frozen when it is loaded
        for value in module.backbone.buffers():
            value.fill_(1)
        loaded = fedvote.load_network(path, module)
        assert torch.equal(loaded(points().test.x), run.deployed(last)(points().test.x))
        for name, value in frozen().backbone.state_dict().items():
            assert torch.equal(loaded.state_dict()[f"network.backbone.{name}"], value), name


def test_clients_with_kept_statistics_still_train_as_one_stack() -> None:
    assert fedvote.simulate(frozen(), points(), clients=2).federation.network.trial.stackable


def kept(network: nn.Module, **options: str) -> set[str]:
    return set(Network(network, start=options.get("start", "given"), shape=(6,)).kept_norms)  # type: ignore[arg-type]


def test_a_norm_is_kept_if_it_is_frozen_in_evaluation_mode_and_has_learned() -> None:
    assert kept(frozen()) == {"backbone.1"}
    assert kept(frozen(affine=False)) == {"backbone.1"}
    assert kept(frozen().eval()) == {"backbone.1"}  # the norm of the head has weights that train
    assert kept(Pretrained().eval()) == set()  # nothing is frozen
    assert kept(Pretrained().eval().requires_grad_(False)) == set()  # then all weights train
    assert kept(frozen(), start="seed") == set()  # whose weights are others
    assert kept(frozen().train()) == set()
    fresh = frozen()
    fresh.backbone.load_state_dict({"1.running_mean": torch.zeros(8), "1.running_var": torch.ones(8)}, strict=False)
    assert kept(fresh) == set()


def test_the_summary_names_norms_that_keep_their_statistics_and_frozen_ones_that_do_not() -> None:
    def summary(network: nn.Module) -> str:
        return " ".join(str(fedvote.simulate(network, points(), clients=2).federation.summary()).split())

    assert "Batch norm keeps its running statistics in backbone.1." in summary(frozen())
    thawed = summary(frozen().train())
    assert "keeps its running" not in thawed and "backbone.1: frozen, but in training mode" in thawed
    assert "running statistics" not in summary(Pretrained().eval())


def test_weights_to_start_from_bring_the_statistics_that_are_kept() -> None:
    weights = frozen().state_dict()
    weights["backbone.1.running_mean"] += 1
    made = fedvote.simulate(frozen(), points(), clients=2, start=weights).federation.network
    assert torch.equal(made.kept_statistics["backbone.1.running_mean"], weights["backbone.1.running_mean"])
    for name in ("head.1.running_mean", "backbone.1.running_mean"):
        del weights[name]
        if name.startswith("head"):
            fedvote.simulate(frozen(), points(), clients=2, start=weights)
    with pytest.raises(ModelError, match=r"has no backbone\.1\.running_mean"):
        fedvote.simulate(frozen(), points(), clients=2, start=weights)


def test_machines_with_other_statistics_are_told_apart() -> None:
    other = frozen()
    other.get_buffer("backbone.1.running_mean").add_(1)
    one, same, two = (Network(each, start="given") for each in (frozen(), copy.deepcopy(frozen()), other))
    assert one.fingerprint == same.fingerprint != two.fingerprint and one.layout == two.layout


def test_statistics_that_are_no_numbers_are_refused() -> None:
    broken = frozen()
    broken.get_buffer("backbone.1.running_var")[2] = torch.nan
    with pytest.raises(ConfigError, match=r"backbone\.1\.running_var have NaN"):
        fedvote.simulate(broken, points(), clients=2)
