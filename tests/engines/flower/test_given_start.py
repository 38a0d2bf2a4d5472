"""Weights that the seed does not make reach every client, whenever it joins; dropout has the same masks everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fedvote.engines.simulate import Simulation
from fedvote.registry import find
from fedvote.runs.experiment import federation as planned
from tests.engines.flower.grid import elect, grid_of, small
from tests.toy import assert_same

NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(1, 64))  # another one in every process
        self.body = nn.Sequential(nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(12, classes)
    def forward(self, x):
        return self.head(self.body(x.flatten(1) * self.scale))
"""
FREEZE = """
class Frozen(Net):
    def __init__(self, shape, classes):
        super().__init__(shape, classes)
        self.body[0].bias.requires_grad_(False)
        self.head.weight.requires_grad_(False)
"""
CASES = {
    "a file": ("method=fedvote",),
    "as it is": ("method=fedvote", "model.start=given"),
    "plain": ("method.coding=plain",),
    "trained floats": ("method.train_float=true",),
    "only a bare parameter": ("model.start=seed",),
    "fedavg": ("method=fedavg",),
    "signum": ("method=signum",),
}


@pytest.mark.parametrize("settings", CASES.values(), ids=list(CASES))
def test_both_engines_start_from_the_given_weights(settings: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    name = f"{tmp_path / 'net.py'}:Net"
    weights = find({}, name, "model.name")((1, 8, 8), 10).state_dict()
    save_file(weights, tmp_path / "weights.safetensors")
    start = f"model.start={tmp_path / 'weights.safetensors'}"
    config = small(f"model.name={name}", start, "federation.cohort=2", "rounds=4", *settings)
    torch.manual_seed(1)
    simulated = list(Simulation(planned(config, "cpu")).run())
    torch.manual_seed(1)  # the server's module is the simulator's; clients build others
    for a, b in zip(simulated, elect(config, grid_of(4), tmp_path / "run"), strict=True):
        assert_same(a.state, b.state)
        assert all(a.record[name] == b.record[name] for name in a.record.keys() - {"seconds", "seconds_training"})


@pytest.mark.parametrize("method", ["fedvote", "fedavg", "fedpaq", "eden"])
@pytest.mark.parametrize("start", ["given", "seed"])
def test_both_engines_leave_alone_what_the_user_froze(method: str, start: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK + FREEZE)
    floats = ["method.train_float=true", "method.float_levels=7"] if method == "fedvote" else []
    config = small(f"model.name={tmp_path / 'net.py'}:Frozen", f"model.start={start}", f"method={method}", *floats)
    torch.manual_seed(1)
    simulation = Simulation(planned(config, "cpu"))
    simulated = list(simulation.run())
    network = simulation.federation.network
    kept = torch.cat([network.start.floats[s.start : s.stop] for s in network.floats if s.name in network.frozen])
    torch.manual_seed(1)
    for a, b in zip(simulated, elect(config, grid_of(4), tmp_path / "run"), strict=True):
        assert_same(a.state, b.state)
        assert torch.equal(a.state["float"][~a.state["float_trains"]], kept)


def test_frozen_weights_are_sent_to_each_client_once(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    settings = (f"model.name={tmp_path / 'net.py'}:Net", "model.start=given", "method.coding=plain")
    first, second, _ = elect(small(*settings), grid_of(4), tmp_path / "run")
    floats = 4 * 4 * (64 + 3 * 12 + 12 * 10 + 10)  # bytes of the float weights, to four clients
    assert first.record["downlink_bytes"] > floats
    assert second.record["downlink_bytes"] < first.record["downlink_bytes"] - floats + 4 * 40
