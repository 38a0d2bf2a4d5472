"""Layers that cannot be trained are named, with the fix."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest
import torch
from torch import nn
from torch.nn.utils.prune import random_unstructured

from fedvote.errors import ModelError
from fedvote.network.network import Network
from fedvote.network.validate import problems


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(2, dtype=torch.complex64))


def old_weight_norm() -> nn.Module:
    with pytest.warns(FutureWarning):
        return nn.utils.weight_norm(nn.Linear(2, 2))


def pruned() -> nn.Module:
    layer = nn.Linear(2, 2)
    random_unstructured(layer, "weight", 0.5)
    return layer


BAD: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "rrelu": (lambda: nn.RReLU(), "rrelu (RReLU) draws random numbers*use nn.LeakyReLU"),
    "lstm": (lambda: nn.LSTM(2, 2, 2, dropout=0.5), "lstm (LSTM) drops between its layers*set dropout=0, and put nn*"),
    "lazy": (lambda: nn.LazyLinear(2), "lazy (LazyLinear) has no shape yet*run one batch through*"),
    "lazynorm": (
        lambda: nn.LazyBatchNorm2d(affine=False),
        "lazynorm (LazyBatchNorm2d) has no shape yet*run one batch through*",
    ),
    "meta": (
        lambda: nn.Linear(2, 2, device="meta"),
        "meta (Linear) is on the device meta, without values*make it on the CPU",
    ),
    "sync": (lambda: nn.SyncBatchNorm(2), "sync (SyncBatchNorm) mixes statistics*use nn.BatchNorm2d"),
    "instance": (
        lambda: nn.InstanceNorm2d(2, track_running_stats=True),
        "instance (InstanceNorm2d) keeps running statistics*set track_running_stats=False",
    ),
    "old": (old_weight_norm, "old (Linear) computes its weights by a hook: call *remove_weight_norm on it*"),
    "spectral": (lambda: nn.utils.spectral_norm(nn.Linear(2, 2)), "spectral (Linear) computes*remove_spectral_norm*"),
    "pruned": (pruned, 'pruned (Linear) computes*call torch.nn.utils.prune.remove(layer, "weight") on it*'),
    "new": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
        "new (ParametrizedLinear) computes its weights from other tensors: call *remove_parametrizations on it*",
    ),
    "complex": (Complex, "complex (Complex) has phase of torch.complex64*make it float32"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_layer_that_cannot_be_trained_is_named_with_its_fix(name: str) -> None:
    make, pattern = BAD[name]
    found = problems(nn.ModuleDict({name: make(), "fine": nn.Linear(2, 2)}))
    assert len(found) == 1 and fnmatchcase(found[0], pattern)


def test_every_offending_layer_is_named_at_once() -> None:
    inner = nn.ModuleDict({name: make() for name, (make, _) in BAD.items()})
    with pytest.raises(ModelError) as refusal:
        Network(nn.Sequential(nn.Linear(2, 2), inner))
    start, *found = str(refusal.value).replace("trained: ", "trained; ", 1).split("; ")
    assert start.startswith(f"{len(BAD)} layer(s) cannot be trained")
    for sentence, (_, pattern) in zip(found, BAD.values(), strict=True):
        assert fnmatchcase(sentence, f"1.{pattern}*")


def test_a_network_that_is_an_offending_layer_itself_is_named() -> None:
    assert problems(nn.RReLU()) == [
        "the network itself (RReLU) draws random numbers outside the run's seed: use nn.LeakyReLU"
    ]


@pytest.mark.parametrize(
    "layer",
    [
        nn.Dropout(0.5),
        nn.LSTM(2, 2),
        nn.GRUCell(2, 2),
        nn.InstanceNorm2d(2),
        nn.GroupNorm(1, 2),
        nn.LeakyReLU(),
        nn.BatchNorm3d(2),
        nn.PReLU(),
    ],
    ids=repr,
)
def test_a_layer_that_torch_can_train_is_not_refused(layer: nn.Module) -> None:
    assert problems(nn.Sequential(nn.Linear(2, 2), layer)) == []
