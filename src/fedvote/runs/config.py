"""The configuration of a run, as frozen dataclasses: read from TOML, with every key checked, and written back whole."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fedvote.core import Task
from fedvote.data.augment import AUGMENTATIONS, Augmentation
from fedvote.errors import ConfigError, did_you_mean
from fedvote.method import Method
from fedvote.methods import METHODS, FedVote
from fedvote.plan import FlowerOptions, Plan
from fedvote.runs.presets import presets
from fedvote.runs.toml_tables import apply, build, check_order
from fedvote.settings import Settings
from fedvote.system.own_code import absolute_name, check_trust, files_in, name_files
from fedvote.training.schedules import Schedule


@dataclass(frozen=True)
class DataConfig(Settings):
    name: str = "digits"  # a dataset, hf:NAME, or FILE.py:NAME, a function that returns fedvote.from_arrays(...)
    task: Task | None = None  # what targets are: classification, regression, multi-label; not given: as the data say
    inputs: tuple[str, ...] | None = None  # of hf:NAME: columns of inputs; not given: the image, or all numbers
    target: str | None = None  # of hf:NAME: the column of targets; not given: the one with classes
    validation: float = 0.0  # hold out this share of the training examples and evaluate on it; 0: on the test examples

    augment: tuple[Augmentation, ...] = field(default=(), metadata={"registry": AUGMENTATIONS})  # of training inputs

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
class Inputs(Settings):
    """The inputs of the network, for a server that has no example."""

    shape: tuple[int, ...] = ()  # of one input
    classes: tuple[str, ...] = ()  # names, by label
    mean: tuple[float, ...] = ()  # of each channel; inputs are scaled by mean and std
    std: tuple[float, ...] = ()  # of each channel
    dtype: Literal["uint8", "float32"] = "uint8"  # of inputs before they are scaled; uint8 is divided by 255

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1 or len(self.classes) < 2:
            raise ConfigError(
                f"inputs.shape is {list(self.shape)} and inputs.classes {list(self.classes)}, expected the sides "
                "of one input, and the names of two classes or more"
            )
        if (
            len(self.mean) != len(self.std)
            or len(self.mean) not in (0, 1, self.shape[0])
            or min(self.std, default=1) <= 0
        ):
            raise ConfigError("inputs.mean and inputs.std: expected none, or a number for each channel, std above 0")


@dataclass(frozen=True)
class ModelConfig(Settings):
    name: str = "digits-cnn"  # a network, or FILE.py:NAME, a function of an input's shape and the number of classes
    keep_float: tuple[str, ...] | None = None  # layers that stay float, not voted on; not given: the last layer
    vote: tuple[str, ...] = ()  # further weights to vote on, such as attention.in_proj_weight
    start: str = "seed"  # the seed draws the initial weights; "given": as the network has them; or a file of weights

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", absolute_name(self.name))
        if self.start not in ("seed", "given"):
            object.__setattr__(self, "start", str(Path(self.start).resolve()))


@dataclass(frozen=True)
class Config(Plan):
    """A plan, with the data, network and method that it runs."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    method: Method = field(default=FedVote(), metadata={"registry": METHODS})  # how clients and server train
    inputs: Inputs | None = None  # shape, classes and scaling, for a server without data
    flower: FlowerOptions = FlowerOptions()  # noqa: RUF009  (it is frozen)


def depends_on_rounds(part: Any) -> bool:
    """Whether a schedule in the configuration runs over the number of rounds, so that more rounds change all."""
    if isinstance(part, Schedule):
        return part.depends_on_rounds
    slots = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
    return any(depends_on_rounds(getattr(part, slot.name)) for slot in slots)


def read(source: str, settings: Sequence[str] = (), trust: bool = True) -> Config:
    """Read a preset or a TOML file, and apply settings of the form `a.b=c`.

    `trust`: false for files that somebody else may have written, such as the configuration in a run folder. Then no
    FILE.py is run but those that this process has named or run before.
    """
    known = presets()
    path = known.get(source) or Path(source)
    if path.is_dir() and (path / "config.toml").is_file():
        raise ConfigError(
            f"{source!r} is a run folder, expected a preset or a file: `fedvote run --resume --out {source}` continues "
            f"the run, and {source}/config.toml is its configuration"
        )
    if not path.is_file():
        raise ConfigError(
            f"{source!r} is neither a preset nor a file; presets: {', '.join(known)}{did_you_mean(source, known)}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    return parse(text, source, settings, trust)


def parse(text: str, source: str, settings: Sequence[str] = (), trust: bool = True) -> Config:
    """Parse a configuration; errors name `source`, where the TOML came from."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    check_order(settings)
    for setting in settings:
        apply(table, setting)
        name_files(files_in(setting.partition("=")[2].strip("\"' ")))
    if trust:
        name_files(files_in(table))
    check_trust(source, files_in(table))
    config: Config = build(Config, table)
    return config
