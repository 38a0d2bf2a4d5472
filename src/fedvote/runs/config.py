"""What a run is, as frozen dataclasses: loaded from TOML, checked to the last key, and written back complete."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedvote.attacks import ATTACKS, Attack, Nothing
from fedvote.data.partition import PARTITIONS, Dirichlet, Partition
from fedvote.errors import ConfigError
from fedvote.federation import check_numbers
from fedvote.method import Method
from fedvote.methods import METHODS, FedVote
from fedvote.registry import absolute_name
from fedvote.runs.presets import presets
from fedvote.runs.toml_tables import apply, build, check_order


@dataclass(frozen=True)
class DataConfig:
    name: str = "digits"  # a dataset, or FILE.py:NAME: a function that returns one, made by fedvote.from_arrays
    validation: float = 0.0  # judge by this share of the training examples, held out, instead of by the test ones

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", absolute_name(self.name))
        if not 0 <= self.validation < 1:
            raise ConfigError(f"data.validation is {self.validation}, expected a share: 0, or more and less than 1")


@dataclass(frozen=True)
class FederationConfig:
    clients: int = 11  # in the federation
    cohort: int = 0  # clients of one round; 0: all of them
    hostile: int = 0  # clients that attack, drawn from the seed
    oracle: bool = False  # let only honest clients take part: a yardstick that no server could run

    def __post_init__(self) -> None:
        check_numbers(self.clients, self.cohort, self.hostile)


@dataclass(frozen=True)
class ModelConfig:
    name: str = "digits-cnn"  # a network, or your own as FILE.py:NAME
    keep_float: tuple[str, ...] | None = None  # layers that are not voted on; not given: the last linear layer

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", absolute_name(self.name))


@dataclass(frozen=True)
class LocalConfig:
    steps: int = 40  # local steps of a client in a round
    batch: int = 100  # examples of a step
    epochs: float = 0.0  # passes over a client's own examples, instead of a number of steps; 0: `steps` counts


@dataclass(frozen=True)
class EngineConfig:
    stack: int = 0  # clients trained at once; 0: as many as fit the device
    precision: str = "auto"  # bfloat16 on a GPU and float32 on a CPU; or one of these two
    compile: bool = False  # on a GPU, make kernels for this network first: up to half a minute, for faster rounds
    wire: str = "weighed"  # messages stay in memory and their bytes are counted; or "written": and are read again
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last round is judged in any case
    test_batch: int = 1000  # examples that are judged at once, by their own statistics
    calibrate_on: int = 1000  # training examples that measure the batch-norm statistics of the deployed network


@dataclass(frozen=True)
class FlowerConfig:
    """When a round over a network closes, and how long it may take; the simulator does not look here."""

    quorum: float = 1.0  # the share of the cohort whose ballots close a round at once
    deadline: float = 600.0  # seconds after which a round closes with fewer
    minimum: float = 0.5  # the least share of the cohort with which a round may close
    patience: float = 3600.0  # seconds that a round waits for that many before the run stops
    poll: float = 0.5  # seconds between two looks for ballots

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= self.quorum <= 1:
            raise ConfigError(
                f"flower.minimum is {self.minimum} and flower.quorum {self.quorum}, "
                "expected shares of the cohort: 0 < minimum <= quorum <= 1"
            )
        if not 0 < self.poll <= self.deadline <= self.patience:
            raise ConfigError(
                f"flower.poll is {self.poll}, flower.deadline {self.deadline} and flower.patience {self.patience}, "
                "expected seconds: 0 < poll <= deadline <= patience"
            )


@dataclass(frozen=True)
class Config:
    seed: int = 0  # of all randomness
    rounds: int = 20  # of the whole run
    data: DataConfig = DataConfig()
    partition: Partition = field(default=Dirichlet(), metadata={"registry": PARTITIONS})  # who has what
    federation: FederationConfig = FederationConfig()
    model: ModelConfig = ModelConfig()
    method: Method = field(default=FedVote(), metadata={"registry": METHODS})  # what is run
    attack: Attack = field(default=Nothing(), metadata={"registry": ATTACKS})  # what hostile clients do
    local: LocalConfig = LocalConfig()
    engine: EngineConfig = EngineConfig()
    flower: FlowerConfig = FlowerConfig()


def read(source: str, settings: Sequence[str] = ()) -> Config:
    """A preset's name or a TOML file, with `a.b=c` settings applied."""
    known = presets()
    path = known.get(source) or Path(source)
    if not path.is_file():
        raise ConfigError(f"{source!r} is neither a preset nor a file; presets: {', '.join(known)}")
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a mark in front
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    return parse(text, source, settings)


def parse(text: str, source: str, settings: Sequence[str] = ()) -> Config:
    """A configuration from TOML that came from `source`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    check_order(settings)
    for setting in settings:
        apply(table, setting)
    made: Config = build(Config, table)
    return made
