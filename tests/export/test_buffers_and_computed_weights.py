"""A loaded network computes as the trained one, whatever tensors beside its weights it has."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

import fedvote
from fedvote.export.network_file import BUFFERS
from fedvote.network.network import Network
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.system.tensor_file import save_tensors
from tests.toy import CLASSES, FEATURES, dataset

OWN = """
import torch
from torch import nn

class Random(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.shift, self.added = nn.Parameter(torch.randn(64)), torch.randn(64)
        self.register_buffer("scale", torch.randn(64))
        self.hidden, self.head = nn.Linear(64, 16), nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.hidden(x.flatten(1) * self.scale + self.shift + self.added).relu())

def network(shape, classes):
    return Random(classes)
"""


class Fourier(nn.Module):
    """Random features: a buffer that nobody can draw again."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.randn(FEATURES, 8))
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
        self.register_buffer("derived", torch.ones(2), persistent=False)
        self.hidden, self.head = nn.Linear(8, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        shown: Tensor = self.head(self.hidden((x @ self.get_buffer("frequencies")).sin()).relu())
        return shown + self.get_buffer("mask").exp().sum() - self.get_buffer("derived")[0]


def saved(module: nn.Module, folder: Path, method: fedvote.FedVote | fedvote.FedAvg) -> tuple[Path, nn.Module]:
    made = fedvote.simulate(module, dataset(), method, clients=2, rounds=1, steps=2, batch=8, device="cpu")
    *_, last = made
    return fedvote.save_network(folder, made.federation, last), made.deployed(last)


@pytest.mark.parametrize("method", [fedvote.FedVote(), fedvote.FedAvg()])
def test_a_file_brings_the_buffers_of_the_network(tmp_path: Path, method: fedvote.FedVote | fedvote.FedAvg) -> None:
    path, deployed = saved(Fourier(), tmp_path, method)
    other = Fourier()
    before = copy.deepcopy(other.state_dict())
    loaded, x = fedvote.load_network(path, other), dataset().test.x
    assert torch.equal(loaded(x), deployed(x))
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())  # a copy has them


def test_a_file_with_other_buffers_than_the_module_is_refused(tmp_path: Path) -> None:
    path, _ = saved(Fourier(), tmp_path, fedvote.FedAvg())
    other = Fourier()
    other.register_buffer("mask", torch.zeros(3))
    with pytest.raises(fedvote.ConfigError, match="is of another network than the module given"):
        fedvote.load_network(path, other)


def test_a_file_without_buffers_is_of_an_earlier_version_and_leaves_those_of_the_module(tmp_path: Path) -> None:
    module = Fourier()
    path, deployed = saved(module, tmp_path, fedvote.FedAvg())
    with safe_open(path, "pt") as file:
        about, names = file.metadata(), [name for name in file.keys() if not name.startswith(BUFFERS)]  # noqa: SIM118
        tensors = {name: file.get_tensor(name) for name in names}
    save_tensors(path, tensors, about)
    x = dataset().test.x
    assert torch.equal(fedvote.load_network(path, module)(x), deployed(x))


def test_machines_with_other_buffers_are_told_apart() -> None:
    one, two = Fourier(), Fourier()
    two.load_state_dict(one.state_dict())
    three = copy.deepcopy(one)
    three.get_buffer("frequencies")[0, 0] += 1
    first, same, other = (Network(each, start="given").fingerprint for each in (one, two, three))
    assert first == same != other


def test_what_a_users_function_draws_follows_from_the_seed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)

    def trained(seed: int, folder: str) -> tuple[list[float], nn.Module]:
        settings = ["rounds=1", "local.steps=2", "federation.clients=3", f"model={tmp_path / 'own.py'}:network"]
        config = read("quickstart", [*settings, f"seed={seed}", "method=fedavg"])
        rounds = [last.record["loss"] for last in run(config, RunFolder(tmp_path / folder), device="cpu")]
        return rounds, fedvote.load_network(tmp_path / folder)

    state = torch.get_rng_state()
    (one, network), (again, same), (other, another) = trained(3, "a"), trained(3, "b"), trained(4, "c")
    assert one == again != other and torch.equal(torch.get_rng_state(), state)
    for name in ("scale", "added"):
        scales = [getattr(each.network, name) for each in (network, same, another)]
        assert torch.equal(scales[0], scales[1]) and not torch.equal(scales[0], scales[2]), name


def test_a_network_with_computed_weights_is_loaded_as_it_was_trained(tmp_path: Path) -> None:
    def module() -> nn.Module:
        return nn.Sequential(weight_norm(nn.Linear(FEATURES, 8)), nn.ReLU(), nn.Linear(8, CLASSES))

    path, deployed = saved(module(), tmp_path, fedvote.FedAvg())
    x = dataset().test.x
    assert torch.equal(fedvote.load_network(path, module())(x), deployed(x))


def test_what_is_no_path_or_no_module_is_refused_by_name(tmp_path: Path) -> None:
    path, _ = saved(Fourier(), tmp_path, fedvote.FedAvg())
    with pytest.raises(fedvote.ConfigError, match="got a Fourier, expected the path of a run folder"):
        fedvote.load_network(Fourier(), path)  # type: ignore[arg-type]
    with pytest.raises(fedvote.ConfigError, match=r"module is the class Fourier, expected an nn\.Module"):
        fedvote.load_network(path, Fourier)  # type: ignore[arg-type]
