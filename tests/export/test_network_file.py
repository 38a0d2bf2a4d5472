"""The network that a run leaves behind is the one that was judged, packed, and needs no data to load."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fedvote import ConfigError, load_network
from fedvote.engines.simulate import simulate
from fedvote.export.network_file import save_network
from fedvote.models import make_model
from fedvote.runs.config import read
from fedvote.runs.experiment import configure, federation
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.runs.simulated_run import run
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
    made = federation(config, "cpu")
    x = made.data.test.x[:20]
    monkeypatch.setattr("fedvote.runs.experiment.load", None)  # no data from here on
    alone = tmp_path / "elsewhere" / "any-name.safetensors"
    alone.parent.mkdir()
    alone.write_bytes((tmp_path / NETWORK).read_bytes())
    for place in (tmp_path, tmp_path / NETWORK, alone):
        loaded = load_network(place)
        assert not loaded.training and torch.equal(loaded(x), made.deployed(snapshot)(x))
        assert loaded.classes == made.data.classes
        assert values is None or set(loaded.get_parameter("network.0.weight").unique().tolist()) == values
    floats_and_header = 4 * 640 + 2 * 4 * (16 + 32 + 64) + 2000
    assert voted_bytes < (tmp_path / NETWORK).stat().st_size < voted_bytes + floats_and_header


def test_who_may_read_the_folder_may_read_the_network(tmp_path: Path) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


def test_a_run_without_an_end_has_no_network(tmp_path: Path) -> None:
    next(iter(run(read("quickstart", ["rounds=2", *FAST[1:]]), RunFolder(tmp_path), device="cpu")))
    with pytest.raises(ConfigError, match=r"network\.safetensors: it is written when a run ends; resume it") as refusal:
        load_network(tmp_path)
    at_once = str(refusal.value).split("`")[-2]  # the last command that it names
    assert at_once == f"fedvote run --resume --out {tmp_path} --set rounds=1"
    config, folder = configure(None, ["rounds=1"], tmp_path, resume=True)
    assert list(run(config, folder, device="cpu", resume=True)) == []
    assert not load_network(tmp_path).training


def test_a_file_is_no_place_for_a_network(tmp_path: Path) -> None:
    made = simulate(module(), dataset(), clients=5, rounds=1, steps=1, batch=8, device="cpu")
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(
        ConfigError, match=r"mine is a file, expected a folder, in which network\.safetensors is written"
    ):
        save_network(tmp_path / "mine", made.federation, next(iter(made)))
    assert (tmp_path / "mine").read_text() == "kept"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    list(run(read("quickstart", FAST), RunFolder(tmp_path), device="cpu"))
    (tmp_path / NETWORK).write_bytes((tmp_path / NETWORK).read_bytes()[:50])
    with pytest.raises(ConfigError, match="damaged"):
        load_network(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished")
    list(run(read("quickstart", FAST), RunFolder(path), device="cpu"))
    return path


def changed(
    run: Path, to: Path, about: dict[str, Any] | str = "", tensors: Mapping[str, Tensor | None] | None = None
) -> Path:
    """A network's file that says something else, or has other tensors; None: not this one."""
    with safe_open(run / NETWORK, "pt") as file:
        said = json.loads(file.metadata()["about"])
        kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = about if about and isinstance(about, str) else json.dumps({**said, **(about or {})})
    kept = {name: tensor for name, tensor in {**kept, **(tensors or {})}.items() if tensor is not None}
    save_file(kept, to, {"about": text})
    return to


DAMAGED = (
    r"network\.safetensors "
    r"(is not a network, is damaged, or is of an earlier version \(.*\)|is of another network)"
)


@pytest.mark.parametrize(
    "about",
    [
        "{", "[1, 2]", '"x"', "5", "null", {"packing": "zip"}, {"packing": [1]}, {"packing": "ternary"},
        {"packing": "float32"}, {"dtype": "float1"}, {"dtype": "load"}, {"dtype": "nn"}, {"dtype": 3}, {"layers": None},
        {"layers": 3}, {"mean": None}, {"mean": "abc"}, {"mean": [[1, 2], [3]]}, {"mean": [0.0, 1.0], "std": [1.0]},
        {"mean": [0.0], "std": [0]}, {"mean": [0.0], "std": [1e-99]}, {"mean": [10**400], "std": [1]},
        {"mean": [float("nan")], "std": [1]}, {"mean": [1, 2, 3], "std": [1, 2, 3]}, {"model": 5}, {"model": ["a"]},
        {"shape": None}, {"shape": "abc"}, {"shape": []}, {"shape": [-1, 8, 8]}, {"shape": [1.5, 8, 8]}, {"classes": 5},
        {"classes": []}, {"classes": "abc"}, {"classes": [1, 2]}, {"keep_float": 5}, {"keep_float": "abc"},
        {"keep_float": [5]}, {"model": "lenet5"},
    ],
    ids=lambda about: str(about)[:40],
)  # fmt: skip
def test_what_a_file_says_that_cannot_be_is_refused_by_its_name(
    finished: Path, tmp_path: Path, about: dict[str, Any] | str
) -> None:
    with pytest.raises(ConfigError, match=DAMAGED):
        load_network(changed(finished, tmp_path / NETWORK, about))


MEAN, VAR = "statistics/1.running_mean", "statistics/1.running_var"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("voted", lambda _: None),
        ("voted", lambda voted: voted[:-1].clone()),
        ("voted", lambda voted: voted[None].clone()),
        ("voted", lambda voted: voted.float()),
        ("float", lambda _: None),
        ("float", lambda _: torch.tensor(1.0)),
        ("float", lambda floats: floats[:, None].clone()),
        ("float", lambda floats: floats[1:].clone()),
        ("float", lambda floats: floats * torch.nan),
        ("float", lambda floats: floats.to(torch.uint8)),
        (MEAN, lambda _: None),
        (MEAN, lambda _: torch.zeros(3)),
        (MEAN, lambda _: torch.zeros(())),
        (MEAN, lambda mean: mean * torch.nan),
        (VAR, lambda var: -var),
        ("statistics/9.running_mean", lambda _: torch.zeros(3)),
    ],
)
def test_tensors_that_cannot_be_are_refused_by_the_name_of_their_file(
    finished: Path, tmp_path: Path, name: str, damage: Callable[[Tensor], Tensor | None]
) -> None:
    with safe_open(finished / NETWORK, "pt") as file:
        tensor = file.get_tensor(name) if name in file.keys() else torch.zeros(0)  # noqa: SIM118
    with pytest.raises(ConfigError, match=DAMAGED):
        load_network(changed(finished, tmp_path / NETWORK, tensors={name: damage(tensor)}))


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(2, 1, 8, 8),
        torch.zeros(2, 1, 8, 8, dtype=torch.int64),
        torch.zeros(1, 8, 8, dtype=torch.uint8),
        torch.zeros(2, 1, 8, 9, dtype=torch.uint8),
        torch.zeros(2, 64, dtype=torch.uint8),
        torch.zeros((), dtype=torch.uint8),
    ],
    ids=lambda x: f"{x.dtype} {tuple(x.shape)}",
)
def test_inputs_of_another_kind_are_refused_rather_than_answered_wrongly(finished: Path, x: Tensor) -> None:
    expected = r"the inputs are .*, expected them as in the training data: torch\.uint8 of shape \(n, 1, 8, 8\)"
    with pytest.raises(ConfigError, match=expected):
        load_network(finished)(x)
    assert load_network(finished)(torch.zeros(0, 1, 8, 8, dtype=torch.uint8)).shape == (0, 10)


OWN = """
from pathlib import Path
from fedvote.models import digits_cnn
(Path(__file__).parent / "ran").touch()
network = digits_cnn
"""


def test_no_file_makes_this_run_code_that_it_brings(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    name = f"{tmp_path / 'mine.py'}:network"
    path = changed(finished, tmp_path / NETWORK, {"model": name})
    config = (finished / "config.toml").read_text().replace("digits-cnn", name)
    assert name in config
    (tmp_path / "config.toml").write_text(config)
    for place in (path, tmp_path):  # also of a folder whose configuration names the same file
        with pytest.raises(ConfigError, match=r"network\.safetensors would run .*mine\.py, .* with --trust"):
            load_network(place)
    assert not (tmp_path / "ran").exists()
    x = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    given = load_network(path, make_model("digits-cnn", (1, 8, 8), 10))
    trusted = load_network(path, trust=True)
    assert torch.equal(given(x), load_network(finished)(x)) and torch.equal(given(x), trusted(x))
    assert (tmp_path / "ran").exists()


def test_a_run_of_a_network_of_ones_own_is_loaded_by_the_process_that_ran_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    config = read("quickstart", [*FAST, f"model.name={tmp_path / 'mine.py'}:network"])
    list(run(config, RunFolder(tmp_path / "run"), device="cpu"))
    assert load_network(tmp_path / "run").shape == (1, 8, 8) == load_network(tmp_path / "run" / NETWORK).shape


@pytest.mark.parametrize("shape", [(1, 4096, 4096), (500_000, 8, 8), (1, 8, 2**40), (2**62, 8, 8)])
def test_a_shape_that_the_file_cannot_fill_takes_no_memory(
    shape: tuple[int, ...], finished: Path, tmp_path: Path
) -> None:
    path = changed(finished, tmp_path / NETWORK, {"shape": shape, "mean": [], "std": []})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match=r"is of another network than it claims|could not be made"):
        load_network(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB


def renamed() -> nn.Module:
    """The same function, under other names."""
    return nn.Sequential(module())


def test_a_network_of_ones_own_is_given_again(tmp_path: Path) -> None:
    made = simulate(module(), dataset(), clients=5, rounds=1, steps=2, batch=8, device="cpu", keep_float=["0"])
    (snapshot,) = made.run()
    path = save_network(tmp_path, made.federation, snapshot)
    with pytest.raises(ConfigError, match="a network without a name: pass it as `module`"):
        load_network(path)
    with pytest.raises(
        ConfigError, match=r"another network than the module given: it has 75 float weights .*keep_float"
    ):
        load_network(path, module(), keep_float=["3"])
    for other in (
        renamed(),
        nn.Sequential(*(layer for layer in module().children() if not isinstance(layer, nn.BatchNorm1d))),
    ):
        with pytest.raises(ConfigError, match=r"another network than the module given: it has .* names and shapes"):
            load_network(path, other, keep_float=["*0"])
    x = made.federation.data.test.x[:9]
    for keep_float in (["0"], None):  # the file has the names of its voted weights
        assert torch.equal(load_network(path, module(), keep_float=keep_float)(x), made.deployed(snapshot)(x))
