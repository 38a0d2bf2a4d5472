"""A user's own parts are found by FILE.py:NAME, and refused in one sentence."""

from __future__ import annotations

import dataclasses
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedvote.cli import app
from fedvote.errors import ConfigError
from fedvote.methods import METHODS
from fedvote.models import MODELS, make_model
from fedvote.registry import find
from fedvote.runs.config import Config, read
from fedvote.runs.experiment import configure
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.runs.toml_tables import as_table, build, to_toml
from tests.runs.tables import made, refuse

OWN = """
from dataclasses import dataclass
from fedvote import FedAvg

@dataclass(frozen=True)
class Mine(FedAvg):
    patience: int = 3

class NoMethod:
    pass

def network(shape, classes):
    raise AssertionError
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


def test_a_users_own_method_is_built_by_file_and_name_and_written_back(own: Path) -> None:
    config = made("", f"method={own}:Mine", "method.patience=5")
    assert type(config.method).__name__ == "Mine" and as_table(config)["method"]["patience"] == 5
    assert as_table(config)["method"]["name"] == f"{own}:Mine"
    assert build(Config, tomllib.loads(to_toml(as_table(config)))) == config


def test_a_users_own_file_is_read_once_and_hides_no_module(tmp_path: Path) -> None:
    import json

    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "json.py").write_text(OWN)
    a, b = (find(METHODS, f"{tmp_path / folder}/json.py:Mine", "method") for folder in ("a", "b"))
    assert sys.modules["json"] is json
    assert a is find(METHODS, f"{tmp_path}/a/json.py:Mine", "method") and a is not b


def test_a_users_own_model_is_found_by_file_and_name(own: Path) -> None:
    assert find(MODELS, f"{own}:network", "model").__name__ == "network"


def test_models_of_ones_own_are_functions_that_make_networks(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("three = 3\ndef none(): ...\ndef text(shape, classes): return 'a net'\n")
    for name, saying in (
        ("three", "is an int, expected a class or a function"),
        ("none", "expected a function of shape and classes that returns"),
        ("text", "returned a str, expected an nn.Module"),
    ):
        with pytest.raises(ConfigError, match=saying):
            make_model(f"{tmp_path}/own.py:{name}", (1, 8, 8), 10)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("own.py:Yours", "own.py has no Yours; it has Mine, "),
        ("gone.py:Mine", "there is no Python file"),
        ("own.py", f"is not known; known: {', '.join(METHODS)}; or your own as FILE.py:NAME"),
        ("own.py:NoMethod", "is not a Method"),
        ("own.py:network", "is not a Method"),
    ],
)
def test_a_users_own_method_that_is_none_is_refused(name: str, sentence: str, own: Path) -> None:
    refuse(sentence, "", f"method={own.parent / name}")


def test_a_method_of_ones_own_that_is_not_complete_is_refused_naming_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text("from fedvote.method import Method\n\nclass Half(Method):\n    pass\n")
    with pytest.raises(ConfigError, match="is not complete: it lacks broadcast, init, local, merge, models, wire"):
        read("quickstart", [f"method={file}:Half"])


def test_a_file_of_ones_own_that_fails_is_refused_naming_the_failure(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ConfigError, match="cannot be loaded: ZeroDivisionError: division by zero"):
        read("quickstart", [f"method={file}:Any"])


TYPED = """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import Literal, Optional
from fedvote import FedAvg

@dataclass(frozen=True)
class Layer:
    width: int = 8  # units
    rate: Optional[float] = None

@dataclass(frozen=True)
class Typed(FedAvg):
    sizes: tuple[int, ...] = (1, 2)  # of its blocks
    mode: Literal["fast", "slow"] = "fast"
    counts: list[int] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=lambda: {"a": 1.0})
    layers: tuple[Layer, ...] = ()
    last: Layer = Layer(16)
    maybe: Layer | None = None
"""


@pytest.fixture
def typed(tmp_path: Path) -> str:
    (tmp_path / "typed.py").write_text(TYPED)
    return f"method={tmp_path}/typed.py:Typed"


def test_a_run_of_a_method_with_fields_of_many_types_is_resumed(typed: str, tmp_path: Path) -> None:
    settings = [
        typed, "method.sizes=[3, 4]", "method.mode=slow", "method.counts=[5]", "method.shares={}",
        "method.maybe.rate=1",
        "method.layers=[{width = 2}, {rate = 0.5}]", "partition=iid", "federation.clients=2", "local.steps=1",
    ]  # fmt: skip
    config = read("quickstart", [*settings, "rounds=1"])
    method: Any = config.method
    assert (method.sizes, method.mode, method.counts, method.shares) == ((3, 4), "slow", [5], {})
    assert [layer.width for layer in method.layers] == [2, 8] and method.maybe.rate == 1.0 and method.last.width == 16
    folder = RunFolder(tmp_path / "run")
    list(run(config, folder, device="cpu"))
    assert folder.config() == config
    longer, folder = configure(None, ["rounds=2"], folder.path, True)
    assert longer == dataclasses.replace(config, rounds=2)
    list(run(longer, folder, device="cpu", resume=True))
    assert [record["round"] for record in folder.metrics()] == [1, 2]


def test_keys_show_those_of_a_users_own_method_and_what_to_write(typed: str) -> None:
    shown = CliRunner().invoke(app, ["keys", typed]).output
    for line in (
        "method.sizes = [1, 2]  # of its blocks",
        'method.mode = "fast"  # one of: fast, slow',
        "method.shares = {a = 1.0}  # a table of numbers such as {a = 0.5}",
        "method.layers[].width = 8  # units",
        "method.last.width = 16  # units",
        "method.maybe = not given  # a table or nothing",
        "method.maybe.rate = not given  # a number or nothing",
    ):
        assert f"  {line}\n" in shown
    assert "method (fedvote)" not in shown


DEFAULTS = """
from dataclasses import dataclass, field
from fedvote import FedAvg
from fedvote.reputation import REPUTATIONS, Cut, Reputation

@dataclass(frozen=True)
class In:
    x: int = 1
    y: int = 2

@dataclass(frozen=True)
class Mine(FedAvg):
    inner: In = In(x=5)
    rule: Reputation = field(default=Cut(beta=0.9), metadata={"registry": REPUTATIONS})

@dataclass(frozen=True)
class Named(FedAvg):
    name: str = "bob"
"""


def test_a_table_that_is_set_in_part_keeps_the_rest_of_its_default(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(DEFAULTS)
    settings = [f"method={file}:Mine", "method.inner.y=7", "method.rule.start=0.7"]
    method: Any = read("quickstart", settings).method
    assert (method.inner.x, method.inner.y) == (5, 7)
    assert (method.rule.beta, method.rule.start) == (0.9, 0.7)


def test_a_field_that_would_hide_the_name_of_its_part_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(DEFAULTS)
    with pytest.raises(ConfigError, match="has a field called name, by which the part itself is chosen: rename it"):
        read("quickstart", [f"method={file}:Named"])


def test_nan_is_no_number_to_configure(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"partition\.alpha is nan, expected a number"):
        read("quickstart", ["partition.alpha=nan"])
