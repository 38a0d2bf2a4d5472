"""Dropout masks follow from the run's key alone, as a layer, as a function and in attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from fedvote import FedAvg, FedVote, simulate
from fedvote.errors import ModelError
from fedvote.network.dropout import KeyedDropout, hashed, noise_of
from fedvote.network.network import Network
from fedvote.randomness import Key, random_rows
from tests.network.cases import normal
from tests.toy import dataset


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(F.dropout(self.body(x), 0.5, self.training))
        return y


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(1, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.4, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.layer(self.body(x[..., None])).mean(1))
        return y


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "layer": lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)),
    "function": Functional,
    "attention": Attention,
}
every_network = pytest.mark.parametrize("make", NETWORKS.values(), ids=list(NETWORKS))


def checked(make: Callable[[], nn.Module]) -> Network:
    network = Network(make(), shape=(6,))
    network.check((6,), 3)
    assert network.trial.dropout and network.trial.stackable
    return network


def outputs(network: Network, noise: Tensor, x_B: Tensor) -> Tensor:
    with network.dropping(noise):
        return network(network.start.voted, network.start.floats, x_B)


@every_network
def test_a_stack_has_each_clients_own_masks_and_the_global_generator_none(make: Callable[[], nn.Module]) -> None:
    network, x_KB = checked(make), normal(3, 5, 6)
    noise_K2 = noise_of([Key(0, 1, client) for client in range(3)], 1)[:, 0]
    before = torch.get_rng_state()
    stacked = vmap(lambda noise, x: outputs(network, noise, x))(noise_K2, x_KB)
    one_by_one = torch.stack([outputs(network, noise_K2[k], x_KB[k]) for k in range(3)])
    torch.testing.assert_close(stacked, one_by_one)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.allclose(outputs(network, noise_K2[0], x_KB[0]), outputs(network, noise_K2[1], x_KB[0]))


@every_network
def test_nothing_is_dropped_in_evaluation(make: Callable[[], nn.Module]) -> None:
    network, x = checked(make), normal(5, 6)
    start = network.start
    torch.testing.assert_close(network(start.voted, start.floats, x), network.module(start, {})(x))


def test_masks_average_to_no_dropout() -> None:
    """Between linear layers, so that a mean passes through them."""
    network, x = checked(Functional), normal(5, 6)
    drawn = torch.stack([outputs(network, noise, x) for noise in noise_of([Key(0)], 1000)[0]])
    away = (drawn.mean(0) - network(network.start.voted, network.start.floats, x)).abs()
    assert bool((away < 5 * drawn.std(0) / 1000**0.5).all())


def test_masks_differ_by_round_client_step_and_place() -> None:
    keys = [Key(seed, round, client) for seed in (0, 1) for round in (1, 2) for client in (0, 1)]
    noise = noise_of(keys, 3).flatten(0, 1)
    assert len(noise.unique(dim=0)) == len(noise) == 24
    with KeyedDropout(noise[0]):
        first, second = F.dropout(torch.ones(400), 0.5), F.dropout(torch.ones(400), 0.5)
    assert 0.35 < (first == second).float().mean() < 0.65
    assert 0.4 < (first == 0).float().mean() < 0.6 and set(first.tolist()) == {0.0, 2.0}


def test_the_hash_is_that_of_random_rows() -> None:
    key = Key(3, 4, 5)
    number = key.number("dropout")
    parts = torch.tensor([number & 2**31 - 1, number >> 31 & 2**31 - 1], dtype=torch.int32)
    assert torch.equal(hashed(torch.arange(1000, dtype=torch.int32), parts), random_rows([key], "dropout", 1000)[0])


@pytest.mark.parametrize(
    ("drop", "shape", "groups"),
    [
        (nn.Dropout1d(0.5), (6, 4, 5), 24),
        (nn.Dropout2d(0.5), (6, 4, 5, 5), 24),
        (nn.Dropout3d(0.5), (6, 4, 2, 2, 2), 24),
        (nn.Dropout(0.5), (6, 4), 24),
    ],
    ids=repr,
)
def test_channels_are_dropped_whole(drop: nn.Module, shape: tuple[int, ...], groups: int) -> None:
    with KeyedDropout(noise_of([Key(0)], 1)[0, 0]):
        y = drop(torch.ones(shape)).reshape(groups, -1)
    assert bool((y == y[:, :1]).all()) and {0.0, 2.0} == set(y[:, 0].tolist())


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = normal(20_000)
    with KeyedDropout(noise_of([Key(0)], 1)[0, 0]):
        y = nn.AlphaDropout(0.3)(x)
    assert float(y.mean()) == pytest.approx(0, abs=0.03) and float(y.std()) == pytest.approx(1, abs=0.03)


def test_attention_with_masks_is_the_attention_of_torch_where_nothing_is_dropped() -> None:
    q, k, v = (normal(2, 3, 4, 8, seed=seed) for seed in range(3))
    kinds: list[dict[str, Any]] = [
        {}, {"is_causal": True}, {"attn_mask": normal(4, 4)}, {"attn_mask": torch.eye(4).bool()},
    ]  # fmt: skip
    for options in kinds:
        with KeyedDropout(noise_of([Key(0)], 1)[0, 0]):
            y = F.scaled_dot_product_attention(q, k, v, **options, dropout_p=1e-9)
        torch.testing.assert_close(y, F.scaled_dot_product_attention(q, k, v, **options))


@every_network
def test_a_run_with_dropout_repeats_to_the_bit(make: Callable[[], nn.Module]) -> None:
    module = make()
    lasts = []
    for disturbance in (1, 2):
        torch.manual_seed(disturbance)
        *_, last = simulate(module, dataset(), FedVote(), clients=5, rounds=2, steps=3, batch=8)
        lasts.append(last)
    assert torch.equal(lasts[0].state["level"], lasts[1].state["level"])


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 12), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x).relu()
        kept = torch.full_like(h, 0.5).bernoulli() if self.training else 1.0
        answer: Tensor = self.head(h * kept)
        return answer


def test_random_numbers_that_no_seed_gives_are_refused() -> None:
    with pytest.raises(ModelError, match="random numbers that do not follow from the run's seed"):
        simulate(Noisy(), dataset(), FedAvg(), clients=3, batch=4)
