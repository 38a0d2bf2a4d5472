"""What a configuration can name, with a line about each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.runs.presets import presets

# where each kind has its literal dict; imported late, as most need torch
REGISTRIES = {
    "methods": "fedvote.methods:METHODS",
    "attacks": "fedvote.attacks:ATTACKS",
    "reputations": "fedvote.reputation:REPUTATIONS",
    "aggregates": "fedvote.aggregate:AGGREGATES",
    "normalisations": "fedvote.quantize:NORMALISATIONS",
    "datasets": "fedvote.data:DATASETS",
    "models": "fedvote.models:MODELS",
    "partitions": "fedvote.data.partition:PARTITIONS",
    "experiments": "fedvote.studies.experiments:EXPERIMENTS",
    "benchmarks": "fedvote.studies.bench:BENCHMARKS",
}
KINDS = (*REGISTRIES, "presets")


def catalogue(kind: str | None = None) -> dict[str, dict[str, str]]:
    """Names and descriptions by kind; of one kind, or of all."""
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"cannot list {kind!r}; known: {', '.join(KINDS)}")
    return {each: _described(each) for each in ([kind] if kind else KINDS)}


def registry(kind: str) -> Mapping[str, Any]:
    """The parts of one kind, by name."""
    module, _, table = REGISTRIES[kind].partition(":")
    found: Mapping[str, Any] = getattr(import_module(module), table)
    return found


def _described(kind: str) -> dict[str, str]:
    if kind == "presets":
        return {name: _first_comment(path) for name, path in presets().items()}
    return {name: _about(part) for name, part in registry(kind).items()}


def _about(thing: Any) -> str:
    """Datasets and experiments say what they are; all else is described by its own first line, or by its file's."""
    if hasattr(thing, "about"):
        return str(thing.about)
    own = thing.__doc__ or ""
    text = own if own and not own.startswith(f"{thing.__name__}(") else sys.modules[thing.__module__].__doc__ or ""
    return text.strip().splitlines()[0]


def _first_comment(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# ")
