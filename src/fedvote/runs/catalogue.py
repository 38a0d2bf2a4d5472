"""What a configuration can name, with a line about each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedvote.aggregate import AGGREGATES
from fedvote.attacks import ATTACKS
from fedvote.data import DATASETS
from fedvote.data.partition import PARTITIONS
from fedvote.errors import ConfigError
from fedvote.methods import METHODS
from fedvote.models import MODELS
from fedvote.quantize import NORMALISATIONS
from fedvote.reputation import REPUTATIONS
from fedvote.runs.config import presets
from fedvote.studies.bench import BENCHMARKS
from fedvote.studies.experiments import EXPERIMENTS

KINDS: dict[str, Mapping[str, Any]] = {
    "methods": METHODS,
    "attacks": ATTACKS,
    "reputations": REPUTATIONS,
    "aggregates": AGGREGATES,
    "normalisations": NORMALISATIONS,
    "datasets": DATASETS,
    "models": MODELS,
    "partitions": PARTITIONS,
    "experiments": EXPERIMENTS,
    "benchmarks": BENCHMARKS,
}


def catalogue(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Names and descriptions by kind; of one kind, or of all."""
    everything = {name: {k: _about(v) for k, v in known.items()} for name, known in KINDS.items()}
    everything["presets"] = {name: _first_comment(path) for name, path in presets().items()}
    if kind is None:
        return everything
    if kind not in everything:
        raise ConfigError(f"cannot list {kind!r}; known: {', '.join(everything)}")
    return {kind: everything[kind]}


def _about(thing: Any) -> str:
    """Datasets and experiments say what they are; all else is described by its own first line, or by its file's."""
    if hasattr(thing, "about"):
        return str(thing.about)
    own = thing.__doc__ or ""
    text = own if own and not own.startswith(f"{thing.__name__}(") else sys.modules[thing.__module__].__doc__ or ""
    return text.strip().splitlines()[0]


def _first_comment(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# ")
