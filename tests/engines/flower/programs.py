"""Programs of a federation on this machine: their logs, their clients, and waiting for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fedvote.engines.flower.local_federation import LocalFederation
from fedvote.engines.flower.roster import identity_in, load_roster

APP = Path(__file__).parent / "unruly_app"


def wait(what: str, condition: Callable[[], bool], federation: LocalFederation, seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        federation.restart_nodes()
        if time.monotonic() > limit:
            logs = "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in federation.programs.logs.iterdir())
            pytest.fail(f"waited {seconds} s for {what}\n{logs}")
        time.sleep(0.2)


def client_of(federation: LocalFederation, run: Path, node: int) -> int:
    """The number that a node's key was given."""
    return load_roster(run, federation.nodes).numbers[identity_in(Path(f"{federation.key(node)}.pub"))]


def log(federation: LocalFederation, name: str) -> str:
    return federation.programs.log(name).read_text(errors="replace")
