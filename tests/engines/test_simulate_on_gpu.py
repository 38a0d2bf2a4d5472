"""The simulator on a GPU: one seed, one result, compiled or not; the bytes that it counts are those that it writes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fedvote import FedAvg, FedVote, Simulation
from fedvote.core import Dataset
from fedvote.engines.simulate import simulate
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.rounds.snapshot import Snapshot
from fedvote.system.device import repeatable
from fedvote.training import descent, replay
from fedvote.training.schedules import Cosine, Linear
from tests.data.pictures import ALL, images
from tests.export.networks import blocks
from tests.toy import assert_same, batches, dataset, examples, keys, module

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
RISING = FedVote(sign_share=0.5, sign_schedule=Linear(start=0.0, end=1.0))
METHODS = pytest.mark.parametrize(
    "method", [FedAvg(), FedAvg(0.1, "SGD"), FedVote(), FedVote(votes="ternary"), RISING], ids=str
)
COMPILE = pytest.mark.parametrize("compile", [False, True], ids=["as it comes", "compiled"])


def simulation(method: Method, compile: bool = False, **options: Any) -> Simulation:
    whole = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cuda", "compile": compile}
    return simulate(module(), dataset(), method, **{**whole, **options})


def last(made: Simulation, network: Network | None = None) -> Snapshot:
    *_, snapshot = made.run(network=network)
    return snapshot


@METHODS
@COMPILE
def test_one_seed_has_one_result(method: Method, compile: bool) -> None:
    once, again = (last(simulation(method, compile)).state for _ in range(2))
    assert_same(once, again)


@METHODS
@COMPILE
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


@pytest.mark.parametrize(
    "method",
    [FedAvg(0.1, "SGD"), FedAvg(), RISING, FedVote(10.0, "SGD", sign_share=0.5, sign_schedule=Cosine())],
    ids=str,
)
@COMPILE
def test_rates_steps_and_shares_that_change_need_one_recording(method: Method, compile: bool) -> None:
    """And each round has the rate of its own: the result is that of recordings made for every round."""
    knobs: dict[str, Any] = {"lr_schedule": Linear(start=1.0, end=0.1), "steps_schedule": Linear(start=1.0, end=0.5)}
    made = simulation(method, compile, **knobs)
    network = made.federation.placed()
    once = last(made, network)
    assert len(replay._recordings[network]) == 1
    fresh = made.federation.start().to(made.federation.device)
    for _ in range(3):
        fresh = next(made.run(since=fresh, network=made.federation.placed()))
    assert_same(once.state, fresh.state)
    plain = last(simulation(method, compile)).state
    assert any(not torch.equal(value, plain[name]) for name, value in once.state.items())


@pytest.mark.parametrize("alone", [False, True], ids=["together", "one by one"])
@COMPILE
def test_residual_networks_train_on_augmented_images(
    alone: bool, compile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if alone:
        monkeypatch.setattr(descent, "SMALL", 0)
        monkeypatch.setattr(descent, "SMALL_COMPILED", 0)
    data = Dataset("pictures", images(), images(), tuple("abc"))
    options: dict[str, Any] = {
        "clients": 3,
        "rounds": 2,
        "steps": 3,
        "batch": 4,
        "start": "seed",
        "device": "cuda",
        "compile": compile,
    }
    plain, once, again = (
        last(simulate(blocks(3, 3), data, RISING, augment=given, **options)) for given in ([], ALL, ALL)
    )
    assert_same(once.state, again.state)
    assert not torch.equal(plain.state["level"], once.state["level"])
