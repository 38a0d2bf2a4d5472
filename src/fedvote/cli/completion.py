"""What shells offer when a word is completed. Nothing here imports torch: an answer has to come at once."""

from __future__ import annotations

from glob import escape, iglob
from pathlib import Path

from fedvote.cli.source_names import configuration_keys, names_in
from fedvote.runs.catalogue import KINDS, REGISTRIES, catalogue

Offers = list[tuple[str, str]] | list[str]


def presets() -> Offers:
    """Presets, with what each is for."""
    return list(catalogue("presets")["presets"].items())


def kinds() -> Offers:
    return list(KINDS)


def devices() -> Offers:
    return ["auto", "cpu", "cuda"]


def datasets() -> Offers:
    return names_in(REGISTRIES["datasets"])


def models() -> Offers:
    return names_in(REGISTRIES["models"])


def experiments() -> Offers:
    return [*names_in(REGISTRIES["experiments"]), "all"]


def benchmarks() -> Offers:
    from fedvote.bench import BENCHMARKS

    return list(BENCHMARKS)


def formats() -> Offers:
    return ["onnx", "c"]


def keys() -> Offers:
    """Keys for --set, ready for a value."""
    return [f"{key}=" for key in configuration_keys()]


def run_folders(incomplete: str) -> Offers:
    """Folders with a run that begin so, and those one level below. Where there are none, shells offer files."""
    found = (path for deep in ("*", "*/*") for path in iglob(f"{escape(incomplete)}{deep}/config.toml"))
    return sorted({str(Path(path).parent) for path in found})
