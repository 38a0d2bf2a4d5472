"""What a run is, as frozen dataclasses: loaded from TOML, checked to the last key, and written back complete."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from fedvote.attacks import ATTACKS, Attack, Nothing
from fedvote.core import ConfigError
from fedvote.data.partition import PARTITIONS, Dirichlet, Partition
from fedvote.method import Method
from fedvote.methods import METHODS, FedVote
from fedvote.tables import apply, build


@dataclass(frozen=True)
class DataConfig:
    name: str = "digits"


@dataclass(frozen=True)
class FederationConfig:
    clients: int = 11
    cohort: int = 0  # clients of one round; 0: all of them
    hostile: int = 0  # clients that attack, drawn from the seed
    oracle: bool = False  # count only honest clients: a yardstick that no server could run


@dataclass(frozen=True)
class ModelConfig:
    name: str = "digits-cnn"
    keep_float: tuple[str, ...] | None = None  # layers that are not voted on; not given: the last linear layer


@dataclass(frozen=True)
class LocalConfig:
    steps: int = 40
    batch: int = 100


@dataclass(frozen=True)
class EngineConfig:
    stack: int = 0
    precision: str = "auto"
    test_batch: int = 1000
    calibrate_on: int = 1000


@dataclass(frozen=True)
class Config:
    seed: int = 0
    rounds: int = 20
    data: DataConfig = DataConfig()
    partition: Partition = field(default=Dirichlet(), metadata={"registry": PARTITIONS})
    federation: FederationConfig = FederationConfig()
    model: ModelConfig = ModelConfig()
    method: Method = field(default=FedVote(), metadata={"registry": METHODS})
    attack: Attack = field(default=Nothing(), metadata={"registry": ATTACKS})
    local: LocalConfig = LocalConfig()
    engine: EngineConfig = EngineConfig()


def presets() -> dict[str, Path]:
    folder = resources.files("fedvote") / "presets"
    return {
        Path(str(file)).stem: Path(str(file))
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".toml")
    }


def read(source: str, settings: Sequence[str] = ()) -> Config:
    """A preset's name or a TOML file, with `a.b=c` settings applied."""
    known = presets()
    path = known.get(source) or Path(source)
    if not path.is_file():
        raise ConfigError(f"{source!r} is neither a preset nor a file; presets: {', '.join(known)}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    for setting in settings:
        apply(table, setting)
    made: Config = build(Config, table)
    return made
