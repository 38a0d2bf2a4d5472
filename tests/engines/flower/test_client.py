"""What a client refuses before it trains: a node that is not set up as it should be, and files that are others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from fedvote.engines.flower.client import take_turn
from fedvote.engines.flower.client_options import NODE_KEYS
from fedvote.engines.flower.local_data import servers_site
from fedvote.engines.flower.problem import receive_problem
from fedvote.engines.flower.server import Server
from fedvote.engines.flower.tasks import read_task
from fedvote.errors import ConfigError, DataError
from fedvote.runs.config import Config
from fedvote.runs.own_files import digest
from tests.engines.flower.grid import Reply, grid_of, small

NET = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 20, bias=False), nn.ReLU(), nn.Linear(20, 10, bias=False))
"""


def asked(config: Config, folder: Path, where: str = "") -> Message:
    """What a server, with test data of its own or without, asks in round 1."""
    grid = grid_of(4)
    grid.dies = True  # as soon as it waits for answers

    def silent(*_: Any) -> list[Reply]:
        return []

    grid.behave = dict.fromkeys(grid.nodes, silent)
    federation = servers_site(config, where, "cpu")
    with pytest.raises(KeyboardInterrupt):
        list(Server(federation, config, folder, grid, None, grid.clock, grid.sleep).run())
    return grid.sent[0]


def turn(message: Message, **node: str) -> bytes:
    """What a client that starts anew makes of it."""
    context = Context(1, 100, dict(node), RecordDict(), {})
    return take_turn(read_task(message, receive_problem(message.content, context.state)), context)


@pytest.mark.parametrize("key", ["dta", "Data", "memroy"])
def test_a_key_of_a_nodes_configuration_that_nobody_knows_is_refused(key: str, tmp_path: Path) -> None:
    message = asked(small(), tmp_path)
    with pytest.raises(ConfigError, match=f"has no key {key}; known: {', '.join(NODE_KEYS)}"):
        turn(message, **{key: "/srv/hospital"})
    assert turn(message, device="cpu", **{"partition-id": "0", "num-partitions": "4"})  # as in Flower's simulation


def test_a_client_without_data_is_refused_by_what_a_server_with_data_asks(tmp_path: Path) -> None:
    x, y = np.zeros((20, 1, 8, 8), np.uint8), np.arange(20) % 10
    np.savez(tmp_path / "test.npz", x=x, y=y)
    np.savez(tmp_path / "train.npz", x=x, y=y)
    message = asked(small(), tmp_path / "run", str(tmp_path))
    with pytest.raises(DataError, match="names no data"):
        turn(message)
    assert turn(message, data=str(tmp_path)) and turn(asked(small(), tmp_path / "demo"))


def test_a_file_that_is_another_than_the_servers_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(NET)
    message = asked(small(f"model.name={file}:net"), tmp_path / "run")
    assert turn(message)
    file.write_text(NET.replace("ReLU", "Tanh"))  # the same layers, so that no fingerprint tells
    digest.cache_clear()  # as in a process that starts anew
    with pytest.raises(ConfigError, match=r"net\.py differs from the server"):
        turn(message, device="cpu")
