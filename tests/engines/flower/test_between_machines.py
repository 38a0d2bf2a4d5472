"""Settings that need more than messages between a server and single clients are refused before any program starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedvote.cli import main
from fedvote.engines.flower.between_machines import check_between_machines, warn_of_trusted
from fedvote.errors import Doubt
from fedvote.methods import FedVote
from fedvote.reputation import Camps
from fedvote.runs.config import read
from fedvote.runs.experiment import federation

pytest.importorskip("flwr")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["attack=omniscient", "federation.hostile=1"], "attack Omniscient (oracle: False) needs the messages"),
        (["attack=inverse", "federation.hostile=1", "federation.oracle=true"], "attack Inverse (oracle: True) needs"),
        (["flower.late_rounds=1", "method.reputation=camps"], "cannot count ballots of earlier rounds: use FedVote"),
        (["flower.late_rounds=1", "method.influence=trimmed"], "another influence than trimmed, or set flower"),
        (["flower.late_rounds=1", "secure.name=tally"], "a secure tally is closed when it is unmasked"),
        (["method.counts=changes", "secure.name=tally"], "set method.counts = votes, or secure.rounding = seed"),
    ],
)  # fmt: skip
def test_a_local_federation_is_refused_before_it_starts(
    settings: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for setting in settings for word in ("--set", setting)]
    with pytest.raises(SystemExit) as stop:
        main(["deploy", "local", "--clients", "7", "--out", str(tmp_path / "run"), *options])
    said = capsys.readouterr()
    assert stop.value.code == 2 and words in said.err and said.err.count("\n") == 1
    assert not said.out and not (tmp_path / "run").exists()


def test_an_attack_in_some_rounds_runs_where_it_runs_in_all() -> None:
    config = read("quickstart", ["federation.hostile=1", "attack=part-time", "attack.intention=inverse"])
    check_between_machines(federation(config, "cpu"), config.flower)


def test_trusted_clients_without_a_folder_of_keys_are_a_doubt() -> None:
    """Anybody could try keys until its number is that of a trusted client."""
    method = FedVote(reputation=Camps(trusted=(0, 1, 2)))
    with pytest.warns(Doubt, match=r"^trusted is \[0, 1, 2\], but any program may become one of these clients: name"):
        warn_of_trusted(method, None, 5)
    keys = {f"key:{n}": f"site-{n}" for n in range(6)}
    with pytest.warns(Doubt, match="but there are 6 keys for 5 clients, and the first to come get numbers"):
        warn_of_trusted(method, keys, 5)
    warn_of_trusted(method, keys, 6)
    warn_of_trusted(FedVote(reputation=Camps()), None, 5)
