"""`fedvote deploy`: what does not need a server."""

from __future__ import annotations

from pathlib import Path

from fedvote.engines.flower.roster import keys_in
from tests.cli.command import Command


def test_who_makes_a_key_is_told_by_what_the_server_will_know_it(fedvote: Command, tmp_path: Path) -> None:
    said = fedvote("deploy", "key", "keys/north").out
    ((known, name),) = keys_in(tmp_path / "keys").items()
    assert name == "north" and said.strip().endswith(f"which will call it {known}")
