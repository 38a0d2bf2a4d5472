"""The simulator on a GPU: one seed, one result, compiled or not; the bytes that it counts are those that it writes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fedvote import FedAvg, FedVote, Simulation
from fedvote.engines.simulate import simulate
from fedvote.federation import Snapshot
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.system.device import repeatable
from tests.toy import assert_same, batches, dataset, examples, keys, module

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
METHODS = pytest.mark.parametrize(
    "method", [FedAvg(), FedAvg(0.1, "SGD"), FedVote(), FedVote(votes="ternary")], ids=str
)


def simulation(method: Method, compile: bool = False, **options: Any) -> Simulation:
    whole = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cuda", "compile": compile}
    return simulate(module(), dataset(), method, **{**whole, **options})


def last(made: Simulation, network: Network | None = None) -> Snapshot:
    *_, snapshot = made.run(network=network)
    return snapshot


@METHODS
@pytest.mark.parametrize("compile", [False, True], ids=["as it comes", "compiled"])
def test_one_seed_has_one_result(method: Method, compile: bool) -> None:
    once, again = (last(simulation(method, compile)).state for _ in range(2))
    assert_same(once, again)


@METHODS
@pytest.mark.parametrize("compile", [False, True], ids=["as it comes", "compiled"])
def test_steps_recorded_in_one_run_serve_another(method: Method, compile: bool) -> None:
    first, second = (simulation(method, compile, **by) for by in ({"attack": "inverse", "hostile": 2}, {"steps": 5}))
    network = first.federation.placed()
    last(first, network)
    assert_same(last(second, network).state, last(second).state)


@METHODS
@pytest.mark.parametrize("compile", [False, True], ids=["as it comes", "compiled"])
def test_dropout_has_one_result_in_recorded_steps_and_the_masks_of_a_cpu(method: Method, compile: bool) -> None:
    dropping = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    options: dict[str, Any] = {"clients": 5, "rounds": 1, "steps": 4, "batch": 8, "compile": compile}
    once, again, on_cpu = (
        last(simulate(dropping, dataset(), method, device=device, precision="float32", **options))
        for device in ("cuda", "cuda", "cpu")
    )
    assert_same(once.state, again.state)
    assert once.record["loss_float"] == pytest.approx(on_cpu.record["loss_float"], abs=0.02)


@METHODS
def test_recurrent_layers_train_on_a_gpu(method: Method) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(2, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.head(self.lstm(x.view(-1, 3, 2))[0][:, -1])
            return y

    made = simulate(Recurrent(), dataset(), method, clients=5, rounds=1, steps=4, batch=8, vote=["lstm"], device="cuda")
    assert last(made).record["loss_float"] < 2


@METHODS
def test_what_is_weighed_is_what_is_written(method: Method) -> None:
    weighed, written = (last(simulation(method, wire=wire)) for wire in ("weighed", "written"))
    assert_same(weighed.state, written.state)
    for name in ("uplink_bytes", "downlink_bytes", "accuracy"):
        assert weighed.record[name] == written.record[name]


@METHODS
def test_kernels_made_for_a_network_make_nearly_the_same_of_a_round(method: Method) -> None:
    network = Network(module()).to("cuda")
    fast = network.to("cuda", compiled=True)
    down, drawn = method.broadcast(method.init(network, 5)), batches(examples().to("cuda"), [0, 1, 2])
    with repeatable():
        made, expected = (method.local(each, down, drawn, {}, keys([0, 1, 2]))[0] for each in (fast, network))
    for name in expected:
        near = (made[name].float() - expected[name].float()).abs() < 1e-3
        assert near.float().mean() > 0.98, "a vote may fall on the other side of its lot"
