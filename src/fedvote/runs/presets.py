"""Presets: the configurations that come with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def presets() -> dict[str, Path]:
    """Name -> TOML file, of every preset."""
    folder = resources.files("fedvote") / "presets"
    return {
        Path(str(file)).stem: Path(str(file))
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".toml")
    }
