"""What tests of the command line share: how a command ended, and a run that is soon over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SMALL = ["--set", "rounds=2", "--set", "federation.clients=3", "--set", "local.steps=1", "--device", "cpu"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]
Refusal = Callable[..., str]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file's bytes, and every folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}
