"""A secure tally with real SuperLink and SuperNode processes, over TLS, with signed keys, through SIGKILL."""

from __future__ import annotations

from pathlib import Path

import pytest
from flwr.app import Message

from fedvote.engines.flower.local_federation import JOB, LocalFederation, node_name
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import parse
from fedvote.runs.folder import RunFolder
from fedvote.runs.toml_tables import as_table, to_toml
from tests.engines.flower.grid import FakeGrid, Reply, elect, grid_of, honest, silent
from tests.engines.flower.test_real_processes import client_of, log, wait
from tests.toy import assert_same

pytestmark = pytest.mark.slow

EXPERIMENT = """
rounds = 3
[partition]
name = "iid"
[federation]
clients = 4
[local]
steps = 20
batch = 32
[engine]
stack = 1
[secure]
name = "tally"
rounding = "seed"
[flower]
minimum = 0.5
deadline = 90
patience = 300
grace = 5
"""
BEFORE, AFTER = 0, 1  # nodes that are killed before their ballot of round 2, and after their ballot of round 3


def test_the_bits_are_those_of_the_voters_whoever_is_killed(tmp_path: Path) -> None:
    config, run = parse(EXPERIMENT, "the test"), tmp_path / "run"
    (tmp_path / "experiment.toml").write_text(to_toml(as_table(config)))
    federation = LocalFederation(tmp_path / "federation", 4)
    keys = federation.folder / "keys"
    federation.node_configs = {
        n: f'memory="{tmp_path / "memory"}" key="{federation.key(n)}" keys="{keys}"' for n in range(4)
    }

    def lines(node: int, round: int) -> int:
        """Flower writes one as a message comes, and one as its reply is sent."""
        return log(federation, node_name(node)).count(f"ROUND {round}]")

    with federation:
        federation.submit(experiment=str(tmp_path / "experiment.toml"), out=str(run))
        wait("round 2 to begin", lambda: lines(BEFORE, 2) > 0, federation, 240)
        federation.programs.kill(node_name(BEFORE))
        federation.start_node(BEFORE)
        wait("a ballot of round 3", lambda: lines(AFTER, 3) > 1, federation, 240)
        federation.programs.kill(node_name(AFTER))
        federation.start_node(AFTER)
        wait("the job to end", lambda: JOB in federation.programs.ended(), federation, 300)
        killed = client_of(federation, run, BEFORE)
    records = RunFolder(run).metrics()
    assert [record["round"] for record in records] == [1, 2, 3]
    assert records[0]["counted"] == [0, 1, 2, 3]
    assert killed not in records[1]["counted"] and len(records[1]["counted"]) == 3

    voters = {str(record["round"]): set(record["counted"]) for record in records}
    grid = grid_of(4)

    def vote(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        client = message.content.config_records["task"]["client"]
        counted = client in voters[message.metadata.group_id]
        return (honest if counted else silent)(grid, node, message)

    grid.behave = dict.fromkeys(grid.nodes, vote)
    clear = parse(EXPERIMENT.replace('name = "tally"\nrounding = "seed"', 'name = "none"'), "the test")
    secret = bytes.fromhex((run / "run-secret").read_text())
    expected = list(elect(clear, grid, tmp_path / "clear", secret=secret))[-1]
    assert_same(expected.state, load_snapshot(run / "checkpoint.safetensors").state)
