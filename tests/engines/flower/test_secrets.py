"""Each client gets the secret by which it rounds, its own alone; the server keeps the run's secret for its owner."""

from __future__ import annotations

import stat
from collections import defaultdict
from pathlib import Path

import pytest

from fedvote.engines.flower.secret_file import FILE, keep_secret
from fedvote.engines.flower.server import Server
from fedvote.engines.flower.tasks import Task, read_task
from fedvote.errors import ConfigError
from fedvote.randomness import SERVER, Key
from fedvote.runs.experiment import federation as planned
from tests.engines.flower.grid import FakeGrid, elect, grid_of, node_of, small
from tests.engines.flower.messages import PROBLEM


def secrets_sent(grid: FakeGrid) -> dict[int, set[bytes]]:
    """Node -> the secrets in its tasks."""
    found = defaultdict(set)
    for message in grid.sent:
        found[message.metadata.dst_node_id].add(read_task(message, PROBLEM).secret)
    return dict(found)


def test_every_node_gets_its_own_clients_secret_in_every_round_and_after_a_restart(tmp_path: Path) -> None:
    grid, again = grid_of(4), grid_of(4)
    next(rounds := elect(small(), grid, tmp_path))
    rounds.close()  # the server is killed
    list(elect(small(), again, tmp_path))
    server = Key(0, 1, SERVER, keep_secret(tmp_path))
    expected = {node_of(grid, tmp_path, client): {server.of(client).secret} for client in range(4)}
    assert secrets_sent(grid) == secrets_sent(again) == expected


def test_a_server_draws_a_secret_that_the_seed_does_not_give(tmp_path: Path) -> None:
    sent = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        config, grid = small("rounds=1"), grid_of(4)
        federation = planned(config, "cpu")
        (snapshot,) = Server(federation, config, folder, grid, None, grid.clock, grid.sleep).run()
        assert snapshot.record["counted"] == [0, 1, 2, 3]  # both sides round and decode by the same numbers
        sent += [secret for secrets in secrets_sent(grid).values() for secret in secrets]
        sent += [keep_secret(folder), federation.secret]
    assert len(set(sent)) == 2 * 5 + 1  # the seed's secret is the same in both


def test_the_secret_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    secret = keep_secret(tmp_path)
    assert len(secret) == 32 and keep_secret(tmp_path) == keep_secret(tmp_path, bytes(32)) == secret
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("content", [b"", b"00", b"no digits", b"\xff\xfe", b"00" * 33])
def test_a_damaged_secret_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ConfigError, match=f"{FILE} does not hold 32 bytes"):
        keep_secret(tmp_path)


def test_a_run_without_its_secret_goes_on_with_a_new_one(tmp_path: Path) -> None:
    """As a run of an earlier version, which had none."""
    list(elect(small("rounds=1"), grid_of(4), tmp_path))
    (tmp_path / FILE).unlink()
    (snapshot,) = elect(small("rounds=2"), grid_of(4), tmp_path)
    assert snapshot.record["counted"] == [0, 1, 2, 3]


def test_a_task_is_printed_without_its_secret() -> None:
    assert "hidden" not in repr(Task(PROBLEM, 1, 0, b"", b"hidden"))
