"""The folder of a federation on this machine: it is used again, or refused before any program starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fedvote import ConfigError
from fedvote.engines.flower.local_federation import JOB, DeploymentError, LocalFederation
from fedvote.engines.flower.processes import MARKS, Processes


def files(folder: Path, *names: str) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for name in names for file in folder.glob(f"{name}/*")}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is started."""
    monkeypatch.setattr(Processes, "start", lambda *_: None)
    monkeypatch.setattr(LocalFederation, "_wait_for", lambda *_: None)
    monkeypatch.setattr(LocalFederation, "_register", lambda *_: None)


@pytest.mark.usefixtures("quiet")
def test_a_second_start_keeps_certificates_and_keys_and_has_a_new_database(tmp_path: Path) -> None:
    with LocalFederation(tmp_path, 2):
        kept = files(tmp_path, "certificates", "keys")
        (tmp_path / "superlink.db").write_text("nodes that are online")
        (tmp_path / "superlink.db-wal").write_text("more")
    with LocalFederation(tmp_path, 2) as second:
        assert files(tmp_path, "certificates", "keys") == kept and len(kept) == 7
        assert (tmp_path / "superlink.db").read_text() == "" and not (tmp_path / "superlink.db-wal").exists()
        assert f"127.0.0.1:{second.port}" in (tmp_path / "flower" / "config.toml").read_text()


@pytest.mark.usefixtures("quiet")
def test_a_start_that_was_killed_between_two_keys_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(LocalFederation, "key", lambda self, n: self.folder / "keys" / str(1 // (1 - n)))
        with pytest.raises(ZeroDivisionError), LocalFederation(tmp_path, 2):
            pass
    assert len(list(tmp_path.glob("keys/*.pub"))) == 1
    with LocalFederation(tmp_path, 2):
        assert sorted(key.stem for key in tmp_path.glob("keys/*.pub")) == ["supernode-0", "supernode-1"]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("nodes", "tls", "asked"), [(3, True, "a federation of 3 clients with TLS"), (2, False, "a federation without TLS")]
)
def test_another_number_of_clients_or_no_tls_is_one_sentence(nodes: int, tls: bool, asked: str, tmp_path: Path) -> None:
    with LocalFederation(tmp_path, 2):
        pass
    with pytest.raises(ConfigError, match=f"holds a federation of 2 clients with TLS, asked for {asked}: ask for"):
        LocalFederation(tmp_path, nodes, tls).check()


@pytest.mark.usefixtures("quiet")
def test_programs_that_outlived_their_command_are_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with LocalFederation(tmp_path, 1, port=port):
            pass
        with pytest.raises(ConfigError, match=f"still run, with a SuperLink on port {port}: .*pkill -f {tmp_path}"):
            LocalFederation(tmp_path, 1).check()
    LocalFederation(tmp_path, 1).check()


@pytest.mark.usefixtures("quiet")
def test_a_client_that_outlived_its_command_and_its_superlink_is_named(tmp_path: Path) -> None:
    """Without TLS no path of the folder is on a client's command line: `pkill -f` would not find it."""
    with LocalFederation(tmp_path, 1, tls=False) as federation:
        environment = {**os.environ, **federation.programs.environment, MARKS: "of another command"}
    client = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment)
    try:
        with pytest.raises(ConfigError, match=f"still run: .* stop them with `kill {client.pid}`"):
            LocalFederation(tmp_path, 1, tls=False).check()
    finally:
        client.communicate(b"\n")
    LocalFederation(tmp_path, 1, tls=False).check()


@pytest.mark.usefixtures("quiet")
def test_one_start_at_a_time(tmp_path: Path) -> None:
    with (
        LocalFederation(tmp_path, 1),
        pytest.raises(ConfigError, match="in progress"),
        LocalFederation(tmp_path, 1),
    ):
        pass
    with LocalFederation(tmp_path, 1):
        pass


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "Traceback\nfedvote.engines.flower.server.NoQuorum: round 2 has 1 of 2 ballots\nERROR : Exit Code: 201",
            r"the job ended after round 0 of 3: round 2 has 1 of 2 ballots$",
        ),
        ("3 of 3 clients are here", r"round 0 of 3; all rounds so far are saved.* Its log ends with:\n3 of 3 clients"),
    ],
)
def test_a_job_that_ends_early_says_why_in_one_sentence(log: str, said: str, tmp_path: Path) -> None:
    federation = LocalFederation(tmp_path, 1)
    with federation.programs, pytest.raises(DeploymentError, match=said):
        federation.programs.start(JOB, [sys.executable, "-c", f"print({log!r})"]).wait()
        list(federation.follow(tmp_path / "run", 3, pause=0.01))
