"""A configuration says what differs from the defaults, and is written back complete."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from fedvote import FedAvg, FedVote
from fedvote.data import DATASETS
from fedvote.data.partition import IID, Dirichlet, Shards
from fedvote.errors import ConfigError
from fedvote.models import MODELS
from fedvote.plan import FlowerOptions
from fedvote.quantize import Erf
from fedvote.reputation import Proportional
from fedvote.runs.config import Config, Inputs, ModelConfig, read
from fedvote.runs.presets import presets
from fedvote.runs.toml_tables import as_table, build, to_toml
from tests.runs.tables import made


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
        Config(flower=FlowerOptions(patience=float("inf"))),
        Config(inputs=Inputs((1, 8, 8), ("a", "b"), (0.5,), (0.25,), "float32")),
    ],
    ids=str,
)
def test_what_is_written_is_complete_and_reads_back_unchanged(config: Config) -> None:
    text = to_toml(as_table(config))
    assert build(Config, tomllib.loads(text)) == config
    table = tomllib.loads(text)
    for field in dataclasses.fields(Config):
        assert field.name in table or getattr(config, field.name) is None


def test_a_source_is_a_preset_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'quickstrat' is neither a preset nor a file; presets: .*quickstart"):
        read("quickstrat")
    with pytest.raises(ConfigError, match="is neither a preset nor a file"):
        read(str(tmp_path))
    (tmp_path / "mine.toml").write_text("rounds = 2")
    assert read(str(tmp_path / "mine.toml")) == Config(rounds=2)


def test_a_run_folder_is_not_a_source_and_the_error_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("rounds = 2")
    with pytest.raises(ConfigError, match=r"is a run folder.*`fedvote run --resume --out .*` continues the run"):
        read(str(tmp_path))


@pytest.mark.parametrize("content", [b"rounds = ", b"[method\n", b"rounds = 3\nrounds = 4", b"\xff\xfe", b"\x00"])
def test_a_file_that_is_not_toml_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape("broken.toml is not TOML")) as refusal:
        read(str(tmp_path / "broken.toml"))
    assert "\n" not in str(refusal.value)


def test_a_mark_that_some_editors_put_in_front_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("rounds = 3\n", encoding="utf-8-sig")
    assert read(str(file)).rounds == 3
