"""The names that a configuration can use, each with its description."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError, did_you_mean
from fedvote.runs.presets import presets

# kind -> its literal dict, as module:DICT; imported late, since most need torch
REGISTRIES = {
    "methods": "fedvote.methods:METHODS",
    "attacks": "fedvote.attacks:ATTACKS",
    "reputations": "fedvote.reputation:REPUTATIONS",
    "influences": "fedvote.influence:INFLUENCES",
    "aggregates": "fedvote.aggregate:AGGREGATES",
    "normalisations": "fedvote.quantize:NORMALISATIONS",
    "datasets": "fedvote.data:DATASETS",
    "models": "fedvote.models:MODELS",
    "augmentations": "fedvote.data.augment:AUGMENTATIONS",
    "schedules": "fedvote.training.schedules:SCHEDULES",
    "partitions": "fedvote.data.partition:PARTITIONS",
    "losses": "fedvote.tasks.losses:LOSSES",
    "metrics": "fedvote.tasks.metrics:METRICS",
    "privacies": "fedvote.privacy:PRIVACIES",
    "secrecies": "fedvote.secure:SECRECIES",
    "experiments": "fedvote.studies.experiments:EXPERIMENTS",
    "benchmarks": "fedvote.studies.bench:BENCHMARKS",
}
KINDS = (*REGISTRIES, "presets")


def catalogue(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Kind -> name -> description; of one kind, or of all."""
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"cannot list {kind!r}; known: {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    return {each: _descriptions(each) for each in ([kind] if kind else KINDS)}


def registry(kind: str) -> Mapping[str, Any]:
    """Name -> part, of one kind."""
    module, _, table = REGISTRIES[kind].partition(":")
    parts: Mapping[str, Any] = getattr(import_module(module), table)
    return parts


def _descriptions(kind: str) -> dict[str, str]:
    if kind == "presets":
        return {name: _first_comment(path) for name, path in presets().items()}
    return {name: _description(part) for name, part in registry(kind).items()}


def _description(part: Any) -> str:
    """The part's `about`, else the first line of its docstring, else the first line of its file's docstring."""
    if hasattr(part, "about"):
        return str(part.about)
    own = part.__doc__ or ""  # a dataclass without a docstring gets its signature: NAME(...)
    text = own if own and not own.startswith(f"{part.__name__}(") else sys.modules[part.__module__].__doc__ or ""
    return text.strip().splitlines()[0]


def _first_comment(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# ")
