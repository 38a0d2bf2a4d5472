"""The server averages; a client trains as plain PyTorch does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedvote import FedAvg, Network
from fedvote.aggregate import CentredClipping, Krum, Mean, Median, TrimmedMean
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.runs.config import read
from tests.toy import CLIENTS, Federation, batches, dataset, examples, keys, merge, module, three_weights

UPS = {
    "voted": torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, -5.0], [5.0, 2.0, 8.0]]),
    "float": torch.tensor([[0.0, 1.0], [0.0, 2.0], [3.0, 3.0]]),
}


def test_the_server_takes_the_plain_mean() -> None:
    method = FedAvg()
    merged = merge(method, method.init(three_weights(), 3), UPS, [0, 1, 2], Key(0, 1))
    assert merged["voted"].tolist() == pytest.approx([3, 2, 2])
    assert merged["float"].tolist() == pytest.approx([1, 2])


def test_by_samples_a_client_counts_by_its_examples() -> None:
    method = FedAvg(by_samples=True)
    ups = UPS | {"samples": torch.tensor([[10.0], [20.0], [10.0]])}
    merged = merge(method, method.init(three_weights(), 3), ups, [0, 1, 2], Key(0, 1))
    assert merged["voted"].tolist() == pytest.approx([3, 2, 0.25])
    assert merged["float"].tolist() == pytest.approx([0.75, 2])


def merged(method: FedAvg, samples: list[list[float]] | None = None) -> State:
    """From a model of zeros."""
    start = {name: torch.zeros_like(rows[0]) for name, rows in UPS.items()}
    return merge(method, start, UPS | ({"samples": torch.tensor(samples)} if samples else {}), [0, 1, 2], Key(0, 1))


def test_by_default_shares_times_models_are_summed_one_after_another() -> None:
    state = merged(FedAvg())
    for name, rows in UPS.items():
        third = torch.tensor(1.0) / 3
        assert torch.equal(state[name], third * rows[0] + third * rows[1] + third * rows[2])
    assert FedAvg() == FedAvg(aggregate=Mean())


def test_the_server_merges_by_another_rule() -> None:
    state = merged(FedAvg(aggregate=Median()))
    assert (state["voted"].tolist(), state["float"].tolist()) == ([3, 2, 3], [0, 2])
    state = merged(FedAvg(aggregate=TrimmedMean(1)))
    assert (state["voted"].tolist(), state["float"].tolist()) == ([3, 2, 3], [0, 2])


def test_voted_and_float_weights_come_from_the_same_client() -> None:
    ups = {
        "voted": torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.0, 0.0], [9.0, 9.0, 9.0], [-9.0, 0.0, 9.0]]),
        "float": torch.tensor([[1.0, 2.0], [9.0, 9.0], [-9.0, 9.0], [1.5, 2.0]]),
    }
    start = {name: torch.zeros_like(rows[0]) for name, rows in ups.items()}
    state = merge(FedAvg(aggregate=Krum(byzantine=0)), start, ups, [0, 1, 2, 3], Key(0, 1))
    k = int((ups["voted"] == state["voted"]).all(1).nonzero())
    assert torch.equal(state["float"], ups["float"][k])


def test_lengths_are_of_what_clients_changed() -> None:
    start = {"voted": torch.full((3,), 100.0), "float": torch.full((2,), -50.0)}
    change = torch.tensor([[3.0, 0.0, 0.0, 4.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    ups = {"voted": start["voted"] + change[:, :3], "float": start["float"] + change[:, 3:]}
    state = merge(FedAvg(aggregate=CentredClipping(radius=2.5)), start, ups, [0, 1], Key(0, 1))
    assert state["voted"].tolist() == pytest.approx([100.75, 100, 100.5])
    assert state["float"].tolist() == pytest.approx([-49, -50])


@pytest.mark.parametrize("said", [0.0, -5.0, -1e9])
def test_nobody_counts_against_others_by_what_they_say_they_have(said: float) -> None:
    method = FedAvg(by_samples=True)
    state = {"voted": torch.zeros(2), "float": torch.zeros(1)}
    rows = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    ups = {"voted": rows, "float": rows[:, :1], "samples": torch.tensor([[said], [said]])}
    merged = merge(method, state, ups, [0, 1], Key(0, 1))
    torch.testing.assert_close(merged["voted"], torch.tensor([0.5, 1.0]))
    ups["samples"] = torch.tensor([[said], [3.0]])
    merged = merge(method, state, ups, [0, 1], Key(0, 1))
    assert bool(((merged["voted"] >= rows[0]) & (merged["voted"] <= rows[1])).all())


def test_by_samples_needs_a_rule_that_uses_weights() -> None:
    """Known before a run begins: nobody can stop one by saying that it has more examples than others."""
    for rule in (Median(), TrimmedMean(1), Krum(1)):
        with pytest.raises(
            ConfigError, match=f"by_samples is true, but {type(rule).__name__} counts every client once"
        ):
            FedAvg(by_samples=True, aggregate=rule)


def test_a_rule_is_chosen_by_name() -> None:
    settings = ["method=fedavg", "method.aggregate=trimmed-mean", "method.aggregate.trim=2"]
    assert read("quickstart", settings).method == FedAvg(aggregate=TrimmedMean(2))
    with pytest.raises(ConfigError, match="'mode' is not known; known: mean, median, trimmed-mean, krum, geometric-m"):
        read("quickstart", ["method=fedavg", "method.aggregate=mode"])


def test_by_samples_a_client_sends_how_many_examples_it_has() -> None:
    method, federation = FedAvg(by_samples=True), Federation(FedAvg(by_samples=True))
    turn = batches(examples(), (0, 1))
    up, _ = method.local(federation.network, method.broadcast(federation.start()), turn, {}, keys((0, 1)))
    assert up["samples"].tolist() == [[40.0], [40.0]]
    assert "samples" not in FedAvg().local(federation.network, federation.start(), turn, {}, keys((0, 1)))[0]


def test_one_client_with_sgd_is_a_plain_training_loop() -> None:
    method = FedAvg(lr=0.1, optimizer="SGD", optimizer_options={"momentum": 0.5})
    network = Network(module(), seed=3)
    federation = Federation(method, network)
    turn = batches(dataset().train, [2], steps=12)
    up, _ = method.local(network, method.broadcast(federation.start()), turn, {}, keys([2]))

    plain = module()
    for slots, vector in ((network.voted, network.start.voted), (network.floats, network.start.floats)):
        for slot in slots:
            plain.get_parameter(slot.name).data = vector[slot.start : slot.stop].view(slot.shape).clone()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.5)
    for step in range(12):
        x, y = turn.at(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(plain(x[0]), y[0]).backward()
        optimizer.step()

    for name, slots in (("voted", network.voted), ("float", network.floats)):
        trained = torch.cat([plain.get_parameter(slot.name).detach().flatten() for slot in slots])
        torch.testing.assert_close(up[name][0], trained, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(up["voted"][0], network.start.voted, atol=0.01)


def test_deployed_and_float_model_are_the_same() -> None:
    federation = Federation(FedAvg())
    models = federation.method.models(federation.states([range(CLIENTS)])[-1])
    assert torch.equal(models["deployed"].voted, models["float"].voted)
    assert torch.equal(models["deployed"].floats, models["float"].floats)


def test_every_weight_travels_as_four_bytes() -> None:
    federation = Federation(FedAvg())
    _, frames = federation.frames(federation.start(), 1, range(CLIENTS))
    network = federation.network
    assert {len(frame) for frame in frames.values()} == {39 + (9 + 4 * network.D) + (9 + 4 * network.F) + 4}
