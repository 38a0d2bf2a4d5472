"""Weights that the user froze stay to the bit and are not sent; a method that moves them says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fedvote
from fedvote import Doubt, FedAvg, FedPAQ, FedVote
from fedvote.method import Method
from fedvote.methods import Eden, FetchSGD, SignSGD, Signum
from fedvote.network.network import Network
from fedvote.network.summary import FROZEN, MOVED, TRAINED
from tests.network.small_networks import InPlace, mlp, points, trained


@pytest.mark.parametrize(
    ("method", "bits"),  # of one message, for each weight of the frozen layer if it were sent
    [
        (FedVote(coding="plain"), 0),
        (FedVote(coding="plain", train_float=True), 32),
        (FedVote(coding="plain", train_float=True, float_levels=7), 3.5),
        (FedAvg(), 32),
        (FedAvg(clip=0.1, down_levels=7), 14),
        (FedAvg(aggregate="centred-clipping"), 32),  # type: ignore[arg-type]
        (FedPAQ(levels=3, coding="plain"), 2.5),
        (Eden(block=8), 1),
        (SignSGD(), 1),
        (Signum(), 1),
        (FetchSGD(), 32),
    ],
    ids=repr,
)
@pytest.mark.parametrize("wire", ["weighed", "written"])
def test_weights_that_the_user_froze_stay_to_the_bit_and_are_not_sent(method: Method, bits: float, wire: str) -> None:
    def after(network: nn.Module) -> tuple[Any, int]:
        run = fedvote.simulate(
            network, points(), method, clients=3, rounds=2, steps=5, batch=20, device="cpu", keep_float=["4"], wire=wire
        )
        *_, last = run
        assert sum(layer.bits_up for layer in run.federation.summary().layers if layer.role == FROZEN) == 0
        return run.deployed(last).network, last.record["uplink_bytes"]

    whole, part = mlp(), mlp()
    part[0].requires_grad_(False)
    part[4].bias.requires_grad_(False)
    (_, all_bytes), (found, fewer_bytes) = after(whole), after(part)
    for name in ("0.weight", "0.bias", "4.bias"):
        assert torch.equal(found.get_parameter(name), part.get_parameter(name))
    assert not torch.equal(found.get_parameter("2.weight"), part.get_parameter("2.weight"))
    # 96 weights that were voted on and 19 floats
    assert all_bytes - fewer_bytes >= 3 * 19 * bits / 8 - 3


@pytest.mark.parametrize("method", [FedVote(coding="plain", train_float=True), FedAvg(), FedPAQ(), Eden()], ids=repr)
def test_the_server_sends_frozen_weights_once(method: Method) -> None:
    network = nn.Sequential(nn.Linear(6, 300), nn.ReLU(), nn.Linear(300, 4), nn.ReLU(), nn.Linear(4, 3))
    network[0].requires_grad_(False)  # 2,100 weights; 1,219 others
    run = fedvote.simulate(
        network, points(), method, clients=2, rounds=2, steps=2, batch=20, device="cpu", wire="written"
    )
    first, second = (snapshot.record["downlink_bytes"] / 2 for snapshot in run)
    assert first > 4 * 2100 and second < 7 * 1219 + 200  # values, and where they are


@pytest.mark.parametrize("method", [FedVote(), FedAvg()])
def test_weights_that_the_user_froze_stay_as_the_seed_draws_them(method: Method) -> None:
    network = mlp()
    network[0].requires_grad_(False)
    run = fedvote.simulate(network, points(), method, clients=2, rounds=2, batch=20, device="cpu", start="seed")
    made = run.federation.network
    drawn = Network(mlp(), run.federation.plan.seed)
    assert "0.weight" not in {slot.name for slot in made.voted}
    *_, last = run
    found = run.deployed(last).get_parameter("network.0.weight").flatten()
    assert torch.equal(found, drawn.start.voted[: len(found)])


def test_the_seed_leaves_norms_out_of_the_frozen_weights() -> None:
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 8), nn.Linear(8, 3))
    network[:2].requires_grad_(False)
    assert Network(network).frozen == {"0.weight", "0.bias"}
    assert Network(network, start="given").frozen == {"0.weight", "0.bias", "1.weight", "1.bias"}


@dataclass(frozen=True)
class MovesAll(FedAvg):
    keeps_frozen = False


def test_a_method_that_moves_every_weight_says_so_of_frozen_ones() -> None:
    network = mlp()
    network[0].requires_grad_(False)
    with pytest.warns(
        Doubt, match=r"0.bias, 0.weight: requires_grad is False, but MovesAll moves every weight.*fedavg"
    ):
        run = fedvote.simulate(network, points(), MovesAll(), clients=2)
    roles = {layer.name: layer.role for layer in run.federation.summary().layers}
    assert roles["0.weight"] == MOVED and roles["2.weight"] == TRAINED
    network[2].requires_grad_(False)
    network[4].bias.requires_grad_(False)
    with pytest.warns(Doubt, match=r"2.bias, 2.weight and 1 more: requires_grad"):
        fedvote.simulate(network, points(), MovesAll(), clients=2)


def test_a_network_that_is_frozen_as_a_whole_trains() -> None:
    network = mlp().requires_grad_(False)
    assert not Network(network, start="given").frozen


class Backbone(InPlace):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.body[:2](x)
        return self.body[2:](x)  # type: ignore[no-any-return]


def test_weights_that_votes_would_move_at_random_are_a_doubt_and_its_fix_works() -> None:
    network = Backbone()
    with pytest.warns(Doubt, match=r"body.0.weight: voted on, but without a gradient .* requires_grad_\(False\) on it"):
        fedvote.simulate(network, points(), clients=2, batch=20)
    network.body[0].requires_grad_(False)
    after, accuracy = trained(network, points(), FedVote(lr=0.1))
    assert torch.equal(after.get_parameter("body.0.weight"), network.get_parameter("body.0.weight")) and accuracy > 0.4
