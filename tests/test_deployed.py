"""The network that a run leaves behind is the one that was judged, packed, and needs no data to load."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedvote import ConfigError, Simulation, load_network
from fedvote.config import read
from fedvote.deployed import save_network
from fedvote.experiment import run, simulation
from fedvote.folder import NETWORK, RunFolder
from tests.toy import dataset, module

FAST = ["rounds=1", "local.steps=2", "federation.clients=3"]


@pytest.mark.parametrize(
    ("setting", "values", "voted_bytes"),
    [
        ("method.votes=binary", {-1.0, 1.0}, -(-12944 // 8)),
        ("method.votes=ternary", {-1.0, 0.0, 1.0}, -(-12944 // 5)),
        ("method=fedavg", None, 4 * 12944),
    ],
)
def test_what_is_loaded_is_what_was_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, values: set[float] | None, voted_bytes: int
) -> None:
    config = read("quickstart", [*FAST, setting])
    (snapshot,) = run(config, RunFolder(tmp_path), device="cpu")
    made = simulation(config, "cpu")
    x, (scaled, _) = made.data.test.x[:20], made.data.test.take(slice(0, 20))
    monkeypatch.setattr("fedvote.experiment.load", None)  # no data from here on
    alone = tmp_path / "elsewhere" / "any-name.safetensors"
    alone.parent.mkdir()
    alone.write_bytes((tmp_path / NETWORK).read_bytes())
    for place in (tmp_path, tmp_path / NETWORK, alone):
        loaded = load_network(place)
        assert not loaded.training and torch.equal(loaded(x), made.deployed(snapshot)(scaled))
        assert loaded.classes == made.data.classes
        assert values is None or set(loaded.get_parameter("network.0.weight").unique().tolist()) == values
    floats_and_header = 4 * 640 + 2 * 4 * (16 + 32 + 64) + 2000
    assert voted_bytes < (tmp_path / NETWORK).stat().st_size < voted_bytes + floats_and_header


def test_who_may_read_the_folder_may_read_the_network(tmp_path: Path) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


def test_a_run_without_an_end_has_no_network(tmp_path: Path) -> None:
    next(iter(run(read("quickstart", ["rounds=2", *FAST[1:]]), RunFolder(tmp_path), device="cpu")))
    with pytest.raises(ConfigError, match=r"network\.safetensors: it is written when a run ends"):
        load_network(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    (tmp_path / NETWORK).write_bytes((tmp_path / NETWORK).read_bytes()[:50])
    with pytest.raises(ConfigError, match="damaged"):
        load_network(tmp_path)


def test_a_network_of_ones_own_is_given_again(tmp_path: Path) -> None:
    made = Simulation.of(module(), dataset(), clients=5, rounds=1, steps=2, batch=8, device="cpu", keep_float=["0"])
    (snapshot,) = made.run()
    path = save_network(tmp_path, made, snapshot)
    with pytest.raises(ConfigError, match="a network without a name: pass it as `module`"):
        load_network(path)
    with pytest.raises(ConfigError, match="75 float weights, but the network given has 39"):
        load_network(path, module())
    x = made.data.test.x[:9]
    assert torch.equal(load_network(path, module(), keep_float=["0"])(x), made.deployed(snapshot)(x))
