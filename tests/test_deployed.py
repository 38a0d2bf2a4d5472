"""The network that a run leaves behind is the one that was judged, packed, and needs no data to load."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedvote import ConfigError, load_network
from fedvote.config import read
from fedvote.experiment import run, simulation
from fedvote.folder import NETWORK, RunFolder

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
    x, _ = made.data.test.take(slice(0, 20))
    monkeypatch.setattr("fedvote.experiment.load", None)  # no data from here on
    loaded = load_network(tmp_path)
    assert not loaded.training and torch.equal(loaded(x), made.deployed(snapshot)(x))
    assert values is None or set(loaded.get_parameter("0.weight").unique().tolist()) == values
    floats_and_header = 4 * 640 + 2 * 4 * (16 + 32 + 64) + 2000
    assert voted_bytes < (tmp_path / NETWORK).stat().st_size < voted_bytes + floats_and_header


def test_a_run_without_an_end_has_no_network(tmp_path: Path) -> None:
    next(iter(run(read("quickstart", ["rounds=2", *FAST[1:]]), RunFolder(tmp_path), device="cpu")))
    with pytest.raises(ConfigError, match=r"no network.safetensors: it is written when a run ends"):
        load_network(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    (tmp_path / NETWORK).write_bytes((tmp_path / NETWORK).read_bytes()[:50])
    with pytest.raises(ConfigError, match="damaged"):
        load_network(tmp_path)
