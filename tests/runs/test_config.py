"""Configurations are checked to the last key, written back complete, and refused in one sentence."""

from __future__ import annotations

import dataclasses
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fedvote import FedAvg, FedVote
from fedvote.data import DATASETS
from fedvote.data.partition import IID, Dirichlet, Shards
from fedvote.errors import ConfigError
from fedvote.methods import METHODS
from fedvote.models import MODELS, make_model
from fedvote.quantize import Erf
from fedvote.registry import find
from fedvote.reputation import Proportional, Uniform
from fedvote.runs.config import Config, FlowerConfig, ModelConfig, read
from fedvote.runs.presets import presets
from fedvote.runs.toml_tables import apply, as_table, build, to_toml

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


def made(text: str, *settings: str) -> Config:
    table = tomllib.loads(text)
    for setting in settings:
        apply(table, setting)
    config: Config = build(Config, table)
    return config


def refuse(sentence: str, text: str, *settings: str) -> str:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refusal:
        made(text, *settings)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_nothing_said_is_the_default() -> None:
    assert made("") == Config()
    assert Config().method == FedVote() and Config().partition == Dirichlet()


def test_a_table_says_what_differs() -> None:
    config = made("""
        seed = 3
        [partition]
        name = "shards"
        shards_per_client = 4
        [model]
        keep_float = ["0", "last*"]
        [method]
        votes = "ternary"
        lr = 1
        [method.reputation]
        name = "proportional"
        beta = 0.25
        [method.optimizer_options]
        betas = [0.5, 0.9]
    """)
    method = FedVote(votes="ternary", lr=1.0, reputation=Proportional(0.25), optimizer_options={"betas": [0.5, 0.9]})
    model = ModelConfig(keep_float=("0", "last*"))
    assert config == Config(seed=3, partition=Shards(4), method=method, model=model)
    assert isinstance(config.method.lr, float)


@pytest.mark.parametrize("name", presets())
def test_every_preset_parses_and_says_what_it_is(name: str) -> None:
    config = read(name)
    assert config.data.name in DATASETS and config.model.name in MODELS
    assert presets()[name].read_text().startswith("# ")
    assert build(Config, tomllib.loads(to_toml(as_table(config)))) == config


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(seed=-5, partition=IID(), model=ModelConfig(keep_float=())),
        Config(model=ModelConfig("lenet5", keep_float=('with "quotes"', "back\\slash", "naïve 🙂"))),
        Config(method=FedAvg(lr=1e-9, optimizer="SGD", optimizer_options={"momentum": 0.9, "nesterov": True})),
        Config(method=FedVote(lr=1e16, normalisation=Erf(3.0), reputation=Proportional(start=0.1))),
        Config(flower=FlowerConfig(patience=float("inf"))),
    ],
    ids=str,
)
def test_what_is_written_is_complete_and_reads_back_unchanged(config: Config) -> None:
    text = to_toml(as_table(config))
    assert build(Config, tomllib.loads(text)) == config
    table = tomllib.loads(text)
    for field in dataclasses.fields(Config):
        assert field.name in table


# --set


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("rounds=7", "rounds", 7),
        ("method.lr=0.5", "method.lr", 0.5),
        ("method.lr=1e-3", "method.lr", 0.001),
        ("method.votes=ternary", "method.votes", "ternary"),
        ('method.votes="ternary"', "method.votes", "ternary"),
        ("method.train_float=true", "method.train_float", True),
        ("method.reputation=proportional", "method.reputation", Proportional()),
        ("method.reputation.name=uniform", "method.reputation", Uniform()),
        ("partition=iid", "partition", IID()),
        ("partition.alpha=2", "partition.alpha", 2.0),
        ("data=cifar10", "data.name", "cifar10"),
        ("data.name=femnist", "data.name", "femnist"),
        ('model.keep_float=["0"]', "model.keep_float", ("0",)),
        ("method.optimizer_options.betas=[0.5, 0.9]", "method.optimizer_options", {"betas": [0.5, 0.9]}),
        ('method={name = "fedavg", lr = 0.25}', "method", FedAvg(lr=0.25)),
    ],
)
def test_a_setting_changes_one_key(setting: str, path: str, value: Any) -> None:
    found: Any = read("quickstart", [setting])
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value and type(found) is type(value)


def test_settings_leave_everything_else_and_later_ones_win() -> None:
    assert read("quickstart", ["rounds=2", "rounds=5"]) == dataclasses.replace(read("quickstart"), rounds=5)


def test_a_name_for_a_whole_part_replaces_it() -> None:
    assert read("quickstart", ["method=fedavg"]).method == FedAvg()
    assert read("quickstart", ["method=fedavg", "method.lr=0.5"]).method == FedAvg(lr=0.5)
    assert read("quickstart", ["method.lr=0.5"]).method == FedVote(lr=0.5)


@pytest.mark.parametrize("setting", ["rounds", "=3", "method.=3", ".lr=3", "method..lr=3", ""])
def test_what_is_not_a_setting_is_refused_with_an_example(setting: str) -> None:
    refuse("is not of the form a.b=c; for example --set method.lr=0.01", "", setting)


def test_a_value_has_no_keys() -> None:
    refuse("rounds is a value, not a table", "rounds = 3", "rounds.most=4")


# What is refused


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("round=3", "the configuration has no key 'round'; known: seed, rounds, data"),
        ("data.folder=x", "data has no key 'folder'; known: name"),
        ("federation.size=3", "federation has no key 'size'; known: clients, cohort"),
        ("model.layers=3", "model has no key 'layers'; known: name, keep_float"),
        ("local.passes=3", "local has no key 'passes'; known: steps, batch, epochs"),
        ("engine.threads=3", "engine has no key 'threads'; known: stack, precision"),
        ("partition.beta=3", "partition 'dirichlet' has no key 'beta'; known: alpha, min_samples"),
        ("method.learning_rate=3", "method 'fedvote' has no key 'learning_rate'; known: lr, optimizer"),
        ("method.normalisation.a=0", "a is 0.0, expected a finite number above 0"),
        ("method.normalisation.a=nan", "a is nan, expected a finite number above 0"),
        ("method.normalisation.b=3", "method 'fedvote'.normalisation 'tanh' has no key 'b'; known: a"),
        ("method.reputation.beta=0.5", "method 'fedvote'.reputation 'uniform' has no key 'beta'; known: none"),
        ("method.optimizer_options.beta=1", "Adam has no option beta; known: amsgrad, betas"),
    ],
)
def test_unknown_keys_are_refused_at_every_level_with_those_known(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("method=fedsgd", "method 'fedsgd' is not known; known: fedvote, fedavg"),
        ("method.name=3", "method '3' is not known; known: fedvote"),
        ("partition=even", "partition 'even' is not known; known: iid, dirichlet"),
        ("method.reputation=fame", "reputation 'fame' is not known; known: uniform, proportional"),
        ("method.normalisation=cube", "normalisation 'cube' is not known; known: tanh, erf"),
    ],
)
def test_unknown_names_are_refused_with_those_known(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("rounds=many", "rounds is 'many', expected int"),
        ("rounds=2.5", "rounds is 2.5, expected int"),
        ("rounds=true", "rounds is True, expected int"),
        ("data.name=3", "data.name is 3, expected str"),
        ("data=3", "data is 3, expected a table"),
        ("federation=everyone", "federation has no key 'name'"),
        ("method.lr=fast", "lr is 'fast', expected float"),
        ("method.lr=true", "lr is True, expected float"),
        ("method.train_float=1", "train_float is 1, expected bool"),
        ("method.optimizer_options=3", "optimizer_options is 3, expected a table"),
        ("model.keep_float=last", "keep_float is 'last', expected a list of strings such as"),
        ("model.keep_float=[1]", "keep_float is [1], expected a list of strings such as"),
        ("method=3", "method is 3, expected a name or a table; known: fedvote, fedavg"),
        ("partition=[]", "partition is [], expected a name or a table; known: iid"),
    ],
)
def test_wrong_types_are_refused_with_the_right_one(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)


def test_a_source_is_a_preset_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'quickstrat' is neither a preset nor a file; presets: .*quickstart"):
        read("quickstrat")
    with pytest.raises(ConfigError, match="is neither a preset nor a file"):
        read(str(tmp_path))
    (tmp_path / "mine.toml").write_text("rounds = 2")
    assert read(str(tmp_path / "mine.toml")) == Config(rounds=2)


def test_the_name_of_a_part_that_is_there_changes_nothing() -> None:
    assert read("quickstart", ["method=fedvote"]) == read("quickstart")
    assert read("quickstart", ["method=fedavg"]).method == FedAvg()


def test_a_name_that_would_undo_a_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set method=fedavg would undo --set method\.lr=0\.5: put it first"):
        read("quickstart", ["method.lr=0.5", "method=fedavg"])
    assert read("quickstart", ["method=fedavg", "method.lr=0.5"]).method == FedAvg(lr=0.5)


def test_models_of_ones_own_are_functions_that_make_networks(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("three = 3\ndef none(): ...\ndef text(shape, classes): return 'a net'\n")
    for name, saying in (
        ("three", "is a int, expected a class or a function"),
        ("none", "expected a function of these two that returns an nn.Module"),
        ("text", "returned a str, expected an nn.Module"),
    ):
        with pytest.raises(ConfigError, match=saying):
            make_model(f"{tmp_path}/own.py:{name}", (1, 8, 8), 10)


@pytest.mark.parametrize("content", [b"rounds = ", b"[method\n", b"rounds = 3\nrounds = 4", b"\xff\xfe", b"\x00"])
def test_a_file_that_is_not_toml_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape("broken.toml is not TOML")) as refusal:
        read(str(tmp_path / "broken.toml"))
    assert "\n" not in str(refusal.value)


# A user's own parts


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


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("own.py:Yours", "own.py has no Yours"),
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
    with pytest.raises(ConfigError, match="is not complete: it lacks broadcast, downlink, init, local"):
        read("quickstart", [f"method={file}:Half"])


def test_a_file_of_ones_own_that_fails_is_refused_naming_the_failure(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ConfigError, match="cannot be loaded: ZeroDivisionError: division by zero"):
        read("quickstart", [f"method={file}:Any"])


def test_a_mark_that_some_editors_put_in_front_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("rounds = 3\n", encoding="utf-8-sig")
    assert read(str(file)).rounds == 3
