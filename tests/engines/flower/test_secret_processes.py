"""A secure tally with real SuperLink and SuperNode processes, over TLS, with signed keys, through SIGKILL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedvote.engines.flower.local_federation import JOB, LocalFederation, node_name
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import parse
from fedvote.runs.folder import RunFolder
from fedvote.runs.toml_tables import as_table, to_toml
from tests.engines.flower.grid import repeat
from tests.engines.flower.programs import APP, client_of, log, wait
from tests.toy import assert_same

pytestmark = pytest.mark.slow

EXPERIMENT = """
rounds = 2
[partition]
name = "iid"
[federation]
clients = 5
[local]
steps = 20
batch = 32
[engine]
stack = 1
[secure]
name = "tally"
rounding = "seed"
[flower]
quorum = 0.8
minimum = 0.5
deadline = 120
patience = 300
grace = 20
"""
BEFORE, AFTER = 0, 1  # nodes that are killed before their ballot of round 1, and after their ballot of round 2


def test_the_bits_are_those_of_the_voters_whoever_is_killed(tmp_path: Path) -> None:
    config, run = parse(EXPERIMENT, "the test"), tmp_path / "run"
    (tmp_path / "experiment.toml").write_text(to_toml(as_table(config)))
    federation = LocalFederation(tmp_path / "federation", 5, app=APP)
    keys = federation.folder / "keys"
    federation.node_configs = {
        n: f'memory="{tmp_path / "memory"}" key="{federation.key(n)}" keys="{keys}"' for n in range(5)
    }
    federation.node_configs[BEFORE] += f' late=1 metrics="{run / "metrics.jsonl"}"'

    def done(node: int, round: int, what: str) -> bool:
        """Whether a node says so of a round's task, or of its ballot. Keys and shares travel as queries."""
        lines = rf"ROUND {round}\].*\n.*{what}: train message.*\n.* successfully"
        return bool(re.search(lines, log(federation, node_name(node))))

    with federation:
        federation.submit(experiment=str(tmp_path / "experiment.toml"), out=str(run))
        wait("the task of round 1", lambda: done(BEFORE, 1, "Receiving"), federation, 240)
        federation.programs.kill(node_name(BEFORE))
        wait("the ballot of round 2", lambda: done(AFTER, 2, "Sending"), federation, 240)
        federation.programs.kill(node_name(AFTER))
        wait("the job to end", lambda: JOB in federation.programs.ended(), federation, 300)
        killed = client_of(federation, run, BEFORE)
    records = RunFolder(run).metrics()
    assert [record["round"] for record in records] == [1, 2]
    assert all(record["counted"] == sorted({0, 1, 2, 3, 4} - {killed}) for record in records)

    clear = parse(EXPERIMENT.replace('name = "tally"\nrounding = "seed"', 'name = "none"'), "the test")
    secret = bytes.fromhex((run / "run-secret").read_text())
    expected = repeat(clear, records, tmp_path / "clear", secret)
    assert_same(expected.state, load_snapshot(run / "checkpoint.safetensors").state)
