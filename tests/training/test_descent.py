"""Local training of a stack: every optimiser allowed steps clients together as it steps them alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from fedvote import FedAvg, FedVote
from fedvote.data.batches import draw_batches
from fedvote.errors import ConfigError
from fedvote.models import MODELS
from fedvote.network.network import Network
from fedvote.training import descent
from fedvote.training.descent import descend, is_small, parts_of
from fedvote.training.optimizer import ELEMENTWISE, FUSED, optimizer_of
from tests.toy import batches, examples, keys, module, owned, scaled

OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"amsgrad": True},
    "RMSprop": {"momentum": 0.5, "centered": True},
}


def trained(method: FedAvg, clients: list[int]) -> list[torch.Tensor]:
    network = Network(module())
    start = [vector.expand(len(clients), -1) for vector in (network.start.voted, network.start.floats)]
    return descend(method, network, start, batches(scaled(), clients, steps=8))


@pytest.mark.parametrize("optimizer", ELEMENTWISE)
@pytest.mark.parametrize("options", [False, True], ids=["plain", "with options"])
def test_an_optimizer_steps_stacked_clients_as_it_steps_them_alone(optimizer: str, options: bool) -> None:
    method = FedAvg(optimizer=optimizer, lr=0.01, optimizer_options=OPTIONS.get(optimizer, {}) if options else {})
    together = trained(method, [0, 1, 2, 3])
    for client in range(4):
        for rows, alone in zip(together, trained(method, [client]), strict=True):
            torch.testing.assert_close(rows[client], alone[0], rtol=1e-3, atol=1e-4)
    start = Network(module()).start
    assert not torch.allclose(together[0][0], start.voted, atol=1e-4), "it did not train at all"
    assert not torch.allclose(together[0][0], together[0][1], atol=1e-4), "clients are all the same"


def test_a_new_optimizer_begins_each_round() -> None:
    method = FedAvg(optimizer="Adam", lr=0.01)
    for a, b in zip(trained(method, [1, 2]), trained(method, [1, 2]), strict=True):
        assert torch.equal(a, b)


def test_what_descends_is_left_as_it_was() -> None:
    network = Network(module())
    start = [network.start.voted.expand(2, -1), network.start.floats.expand(2, -1)]
    before = [rows.clone() for rows in start]
    after = descend(FedAvg(lr=0.1), network, start, batches(scaled(), [0, 1]))
    assert all(torch.equal(a, b) for a, b in zip(start, before, strict=True))
    assert not any(rows.requires_grad for rows in after)


def test_fused_optimizers_are_among_those_allowed() -> None:
    assert set(FUSED) <= set(ELEMENTWISE)
    for name in FUSED:
        assert optimizer_of(FedAvg(optimizer=name)).make([torch.zeros(1, requires_grad=True)]).defaults["fused"] is True


@pytest.mark.parametrize("optimizer", ["LBFGS", "Adafactor", "Muon", "SparseAdam", "Adma", "adam", "Optimizer", ""])
def test_an_optimizer_that_would_mix_clients_or_is_none_is_refused_with_those_known(optimizer: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"optimizer {optimizer!r} is not")) as refusal:
        FedAvg(optimizer=optimizer)
    assert all(name in str(refusal.value) for name in ELEMENTWISE)


@pytest.mark.parametrize(
    ("optimizer", "options", "words"),
    [
        ("SGD", {"betas": [0.9, 0.99]}, ["betas", "momentum", "nesterov", "weight_decay"]),
        ("Adam", {"momentum": 0.9}, ["momentum", "betas", "amsgrad"]),
        ("Adam", {"betas": [0.9, 2.0]}, ["Invalid beta"]),
        ("Adam", {"betas": [0.9]}, ["betas", "[0.9]"]),
        ("Adam", {"betas": "high"}, ["betas", "high"]),
        ("Adam", {"foreach": True}, ["foreach", "fused"]),
        ("SGD", {"nesterov": True}, ["momentum"]),
        ("SGD", {"params": []}, ["params", "momentum"]),
        ("SGD", {"lr": 0.5}, ["no option lr", "momentum"]),
    ],
    ids=str,
)
def test_an_option_that_the_optimizer_does_not_take_is_refused(
    optimizer: str, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as refusal:
        FedAvg(optimizer=optimizer, optimizer_options=options)
    for word in [optimizer, *words]:
        assert word in str(refusal.value)


@pytest.mark.parametrize("method", [FedAvg(lr=0.01), FedAvg(lr=0.01, optimizer="SGD")], ids=str)
def test_clients_with_fewer_steps_end_where_they_would_alone(method: FedAvg) -> None:
    network, turns = Network(module()), {0: 5, 1: 1, 3: 8}

    def ends(clients: list[int], steps: list[int]) -> list[torch.Tensor]:
        start = [vector.expand(len(clients), -1) for vector in (network.start.voted, network.start.floats)]
        return descend(method, network, start, draw_batches(scaled(), owned(clients), steps, 8, keys(clients)))

    together = ends(list(turns), list(turns.values()))
    for row, (client, steps) in enumerate(turns.items()):
        for rows, alone in zip(together, ends([client], [steps]), strict=True):
            torch.testing.assert_close(rows[row], alone[0], rtol=1e-3, atol=1e-4)
    assert not torch.allclose(ends([0], [5])[0], ends([0], [6])[0], atol=1e-4), "a step more makes no difference"


@dataclass(frozen=True)
class Near(FedAvg):
    """A method of somebody's own, which computes with whole vectors."""

    def objective(self, network: Network, *weights: Any) -> torch.Tensor:
        voted, floats, x_B, y_B = weights
        near: torch.Tensor = (voted - network.start.voted).square().sum()
        return network.loss(voted, floats, x_B, y_B) + 10 * near


@pytest.mark.parametrize("small", [True, False])
def test_an_objective_is_given_parts_only_where_it_says_that_it_takes_them(
    small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(descent, "SMALL", 0)  # so that clients have calls of their own
    network = Network(module())
    assert parts_of(FedVote(), network, [network.start.voted[None]]) == list(network.sizes[:1])
    assert parts_of(FedVote(), network, [network.start.voted[None], torch.ones(1, 1)]) == [network.sizes[0], [1]]
    assert parts_of(Near(), network, [network.start.voted[None], network.start.floats[None]]) is None
    near, far = (trained(method, [0, 1])[0] for method in (Near(lr=0.01), FedAvg(lr=0.01)))
    start = Network(module()).start.voted
    assert 0 < (near - start).norm() < (far - start).norm()


def test_a_small_network_is_small_and_a_large_one_is_not() -> None:
    assert is_small(Network(module()), torch.zeros(4, 6))
    assert not is_small(Network(MODELS["lenet5"]((1, 28, 28), 10)), torch.zeros(100, 1, 28, 28))


def test_operations_are_those_of_the_layers_and_grow_with_the_batch() -> None:
    network = Network(module())
    assert network.operations(torch.zeros(10, 6)) == 2 * 10 * (6 * 12 + 12 * 3)
    assert network.operations(torch.zeros(1000, 6)) == 2 * 1000 * (6 * 12 + 12 * 3)


@pytest.mark.parametrize("cores", [1, 3])
def test_clients_on_threads_end_where_they_would_in_one_call(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More clients than threads, some with fewer steps, some with other labels; and every client its own result."""
    network, clients = Network(module()), [0, 1, 2, 3, 4]
    start = [torch.stack([v * (1 + 0.1 * k) for k in clients]) for v in (network.start.voted, network.start.floats)]
    drawn = draw_batches(examples(), owned(clients), [4, 1, 3, 4, 2], 8, keys(clients))
    labels = drawn.examples.y[drawn.index_KSB]
    labels[2] = 2 - labels[2]
    drawn = replace(drawn, poisoned_KSB=labels)
    together = descend(FedAvg(lr=0.01), network, start, drawn)
    before = torch.get_num_threads()
    monkeypatch.setattr(descent, "SMALL", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    first, again = (descend(FedAvg(lr=0.01), network, start, drawn) for _ in range(2))
    monkeypatch.undo()
    torch.set_num_threads(before)
    for rows, alone, repeated in zip(together, first, again, strict=True):
        torch.testing.assert_close(rows, alone, rtol=1e-3, atol=1e-4)
        assert torch.equal(alone, repeated)
    assert len({tuple(row.tolist()) for row in first[0]}) == 5
