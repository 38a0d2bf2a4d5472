"""The configuration of a run, as frozen dataclasses: read from TOML, with every key checked, and written back whole."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedvote.core import Task
from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.methods import METHODS, FedVote
from fedvote.plan import FlowerOptions, Plan
from fedvote.registry import absolute_name, did_you_mean
from fedvote.runs.presets import presets
from fedvote.runs.toml_tables import apply, build, check_order


@dataclass(frozen=True)
class DataConfig:
    name: str = "digits"  # a dataset, hf:NAME, or FILE.py:NAME, a function that returns fedvote.from_arrays(...)
    task: Task | None = None  # what targets are: classification, regression, multi-label; not given: as the data say
    inputs: tuple[str, ...] | None = None  # of hf:NAME: columns of inputs; not given: the image, or all numbers
    target: str | None = None  # of hf:NAME: the column of targets; not given: the one with classes
    validation: float = 0.0  # hold out this share of the training examples and evaluate on it; 0: on the test examples

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _absolute_folder(absolute_name(self.name)))
        if (self.inputs or self.target) and not self.name.startswith("hf:"):
            raise ConfigError(f"data.inputs and data.target name columns of hf:NAME, but data.name is {self.name!r}")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"data.validation is {self.validation}, expected a share: at least 0 and less than 1")


def _absolute_folder(name: str) -> str:
    """hf:FOLDER with the folder's absolute path, which is valid everywhere; other names unchanged."""
    prefix, _, folder = name.partition(":")
    return f"hf:{Path(folder).resolve()}" if prefix == "hf" and Path(folder).is_dir() else name


@dataclass(frozen=True)
class ModelConfig:
    name: str = "digits-cnn"  # a network, or your own as FILE.py:NAME
    keep_float: tuple[str, ...] | None = None  # layers that stay float, not voted on; not given: the last linear layer

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", absolute_name(self.name))


@dataclass(frozen=True)
class Config(Plan):
    """A plan, with the data, network and method that it runs."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    method: Method = field(default=FedVote(), metadata={"registry": METHODS})  # how clients and server train
    flower: FlowerOptions = FlowerOptions()  # noqa: RUF009  (it is frozen)


def read(source: str, settings: Sequence[str] = ()) -> Config:
    """Read a preset or a TOML file, and apply settings of the form `a.b=c`."""
    known = presets()
    path = known.get(source) or Path(source)
    if not path.is_file():
        raise ConfigError(
            f"{source!r} is neither a preset nor a file; presets: {', '.join(known)}{did_you_mean(source, known)}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    return parse(text, source, settings)


def parse(text: str, source: str, settings: Sequence[str] = ()) -> Config:
    """Parse a configuration; errors name `source`, where the TOML came from."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    check_order(settings)
    for setting in settings:
        apply(table, setting)
    config: Config = build(Config, table)
    return config
