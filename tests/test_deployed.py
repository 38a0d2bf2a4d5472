"""The network that a run leaves behind is the one that was judged, packed, and needs no data to load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

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


@pytest.mark.parametrize("damage", [{"about": "{"}, {"packing": "zip"}, {"dtype": "float1"}, {"layers": None}, "voted"])
def test_what_is_not_there_or_not_known_is_refused(tmp_path: Path, damage: str | dict[str, str | None]) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    with safe_open(tmp_path / NETWORK, "pt") as file:
        about = json.loads(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if isinstance(damage, str):
        del tensors[damage]
        text = json.dumps(about)
    else:
        text = damage.get("about") or json.dumps(about | damage)
    save_file(tensors, tmp_path / NETWORK, {"about": text})
    with pytest.raises(
        ConfigError, match=r"is no network, is damaged, or is of an earlier version|is of another network"
    ):
        load_network(tmp_path)


def renamed() -> nn.Module:
    """The same function, under other names."""
    return nn.Sequential(module())


def test_a_network_of_ones_own_is_given_again(tmp_path: Path) -> None:
    made = Simulation.of(module(), dataset(), clients=5, rounds=1, steps=2, batch=8, device="cpu", keep_float=["0"])
    (snapshot,) = made.run()
    path = save_network(tmp_path, made, snapshot)
    with pytest.raises(ConfigError, match="a network without a name: pass it as `module`"):
        load_network(path)
    with pytest.raises(
        ConfigError, match=r"another network than the module given: it has 75 float weights .*keep_float"
    ):
        load_network(path, module())
    for other in (
        renamed(),
        nn.Sequential(*(layer for layer in module().children() if not isinstance(layer, nn.BatchNorm1d))),
    ):
        with pytest.raises(ConfigError, match=r"another network than the module given: it has .* names and shapes"):
            load_network(path, other, keep_float=["*0"])
    x = made.data.test.x[:9]
    assert torch.equal(load_network(path, module(), keep_float=["0"])(x), made.deployed(snapshot)(x))
