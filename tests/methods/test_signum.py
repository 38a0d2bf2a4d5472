"""Momentum by hand, client by client."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedvote import simulate
from fedvote.core import Batches, Examples
from fedvote.data.partition import IID
from fedvote.errors import ConfigError
from fedvote.methods import SignSGD, Signum
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import Federation, assert_same, batches, dataset, keys, merge, module, three_weights


def mean_output(outputs: Tensor, _: Tensor) -> Tensor:
    """A loss whose gradient is the input."""
    return outputs.mean()


def test_momentum_by_hand_over_three_rounds_of_partial_participation() -> None:
    method = Signum(lr=1.0, optimizer="SGD", beta=0.5)
    network = Network(nn.Linear(3, 1, bias=False), keep_float=(), loss=mean_output)
    memory = {"momentum": torch.zeros(2, 3)}

    def turn(round: int, updates: dict[int, list[float]]) -> list[list[int]]:
        """The signs that the clients of a round send; what they remember is kept in `memory`."""
        clients, K = list(updates), len(updates)
        examples = Examples(torch.tensor(list(updates.values())), torch.zeros(K, dtype=torch.int64))
        drawn = Batches(examples, torch.arange(K).view(K, 1, 1), torch.ones(K, dtype=torch.int64))
        mine = {"momentum": memory["momentum"][clients]}
        up, new = method.local(network, method.init(network, 2), drawn, mine, keys(clients, round))
        memory["momentum"][clients] = new["momentum"]
        return up["signs"].tolist()

    assert turn(1, {0: [4, -4, 0], 1: [-2, 2, 8]}) == [[1, -1, 1], [-1, 1, 1]]
    torch.testing.assert_close(memory["momentum"], torch.tensor([[2.0, -2, 0], [-1, 1, 4]]))

    assert turn(2, {1: [3, 3, -2]}) == [[1, 1, 1]]  # the third sign is the momentum's, not the update's
    torch.testing.assert_close(memory["momentum"], torch.tensor([[2.0, -2, 0], [1, 2, 1]]))

    assert turn(3, {0: [-4, 1, -2], 1: [-3, 0, 5]}) == [[-1, -1, -1], [-1, 1, 1]]
    torch.testing.assert_close(memory["momentum"], torch.tensor([[-1.0, -0.5, -1], [-1, 1, 3]]))


def test_the_simulator_gives_every_client_its_own_momentum_back() -> None:
    method = Signum(beta=0.75)
    simulation = simulate(module(), dataset(), method, clients=5, cohort=2, rounds=6, steps=2, batch=8, partition=IID())
    before = simulation.federation.start()
    assert not before.memory["momentum"].any()
    seen: set[int] = set()
    for after in simulation.run():
        cohort = after.record["clients"]
        changed = (after.memory["momentum"] != before.memory["momentum"]).any(1)
        assert changed.nonzero().flatten().tolist() == cohort
        before, seen = after, seen | set(cohort)
    assert len(seen) > 2


def test_without_momentum_it_is_signsgd() -> None:
    plain, federation = SignSGD(server_lr=0.25), Federation(Signum(beta=0.0, server_lr=0.25))
    network, turn = federation.network, batches(federation.data, (0, 1, 2))
    signs, _ = plain.local(network, federation.start(), turn, {}, keys((0, 1, 2)))
    memory = {"momentum": torch.ones(3, network.D + network.F)}
    up, _ = federation.method.local(network, federation.start(), turn, memory, keys((0, 1, 2)))
    assert_same(up, signs)
    merged = (merge(method, federation.start(), up, [0, 1, 2], Key(0, 1)) for method in (plain, federation.method))
    assert_same(*merged)


def test_every_weight_moves_by_the_servers_step_against_the_majority() -> None:
    method, network = Signum(server_lr=0.5), three_weights()
    signs = torch.tensor([[1, 1, -1, -1, 1], [1, -1, -1, -1, 1], [1, 1, -1, 1, -1]], dtype=torch.int8)
    merged = merge(method, method.init(network, 3), {"signs": signs}, [0, 1, 2], Key(0, 1))
    torch.testing.assert_close(merged["voted"], network.start.voted - torch.tensor([0.5, 0.5, -0.5]))
    torch.testing.assert_close(merged["float"], network.start.floats - torch.tensor([-0.5, 0.5]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beta": 1.0}, "beta is 1.0, expected a number from 0 to below 1"),
        ({"beta": -0.1}, "beta is -0.1, expected a number from 0 to below 1"),
        ({"beta": float("nan")}, "beta is nan, expected a number from 0 to below 1"),
        ({"server_lr": 0.0}, "server_lr is 0.0, expected a finite number above 0"),
    ],
    ids=str,
)
def test_values_that_make_no_sense_are_refused_with_those_that_do(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Signum(**options)
