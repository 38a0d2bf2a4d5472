"""`fedvote data`: what is there, and who has what."""

from __future__ import annotations

from tests.cli.command import Command


def test_data_check_says_what_is_there(fedvote: Command) -> None:
    assert fedvote("data", "check", "digits").out == "digits needs no files\n"
    missing = fedvote("data", "check", "cifar10")
    assert missing.code == 2 and "missing" in missing.out and "Traceback" not in missing.err


def test_data_show_draws_who_has_what(fedvote: Command) -> None:
    outcome = fedvote("data", "show", "quickstart", "--set", "federation.clients=4")
    assert outcome.code == 0
    rows = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
    assert rows[:5] == ["client", "0", "1", "2", "3"]
