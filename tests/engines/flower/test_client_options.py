"""A client that cannot work says why before it starts, in one sentence."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedvote.cli import main
from fedvote.engines.flower.client_options import check_client
from fedvote.errors import ConfigError, Doubt


@pytest.fixture
def port() -> Iterator[int]:
    """A port that is taken."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ca.crt", "node", "hospital.py"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir()
    return tmp_path


RIGHT = {"--superlink": "fed.example.org:8000", "--root-certificates": "ca.crt", "--auth-supernode-private-key": "node"}


def options(**changed: str) -> list[str]:
    named = {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return [word for pair in (RIGHT | named).items() if pair[1] for word in pair]


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("node", ["", 'data="data" log="turns.jsonl"', 'data="hospital.py:load" memory="new"'])
def test_a_client_whose_files_are_there_may_start(node: str) -> None:
    check_client(options(node_config=node), 0)
    check_client([f"{name}={value}" for name, value in RIGHT.items()], 0)


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"superlink": ""}, "--superlink is not given, expected the server's address"),
        ({"root_certificates": "no.crt"}, "--root-certificates is no.crt, which is not a file"),
        ({"auth_supernode_private_key": "data"}, "--auth-supernode-private-key is data, which is not a file"),
        ({"node_config": "data=/srv"}, "--node-config is data=/srv, expected keys with values in double quotes"),
        ({"node_config": 'data="nowhere"'}, "data in --node-config is nowhere, but there is no nowhere"),
        ({"node_config": 'data="no.py:load"'}, "data in --node-config is no.py:load, but there is no no.py"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_starts(
    changed: dict[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["deploy", "client", *options(**changed)])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and sentence in said and len(said.splitlines()) == 1


@pytest.mark.usefixtures("site")
def test_a_key_that_only_another_app_can_know_is_a_doubt() -> None:
    with pytest.warns(Doubt, match="has no key dta; known: data, memory"):
        check_client(options(node_config='dta="data"'), 0)


@pytest.mark.usefixtures("site")
def test_a_port_that_is_taken_is_named(port: int) -> None:
    with pytest.raises(ConfigError, match=f"port {port} cannot be used .*: choose another, --port N"):
        check_client(options(), port)
