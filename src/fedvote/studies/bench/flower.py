"""Seconds and bytes of a round over Flower: rounds that do nothing, ballots, and FedAvg's floats.

`own_seconds` is the slowest client's own work. Bytes are sums over the three clients: of our frames, of Flower's
messages around them, and of all TCP traffic, with TLS and polling. Numbers are medians over rounds, without the first
round if there are several: clients join in it.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedvote.engines.flower.local_federation import APP, JOB, DeploymentError, LocalFederation
from fedvote.engines.flower.processes import end_as_by_interrupt
from fedvote.runs.config import Config, read
from fedvote.runs.progress import watch
from fedvote.runs.toml_tables import as_table, in_order, to_toml
from fedvote.studies.bench.counting_proxy import CountingProxy
from fedvote.studies.rows import Rows, chosen

NODES, NOTHING, METHODS = 3, "nothing", ("fedvote", "fedavg")
SETTINGS = (f"federation.clients={NODES}", "partition=iid", "flower.deadline=550")
MEASURED = ("seconds", "uplink_bytes", "uplink_message_bytes", "downlink_bytes", "downlink_message_bytes")
COLUMNS = (*MEASURED, "own_seconds", "uplink_tcp_bytes", "downlink_tcp_bytes")
STOPWATCH = "flower_stopwatch_app"
TRAINING = APP.replace("fedvote.engines.flower.client_app:app", f"{STOPWATCH}:client")
IDLE = TRAINING.replace("fedvote.engines.flower.server_app:app", f"{STOPWATCH}:server") + 'rounds = "1"\nnodes = "1"\n'


def bench(preset: str = "quickstart", set: Sequence[str] = (), rounds: int = 4, only: Sequence[str] = ()) -> Rows:
    """A row for each kind of round, with three nodes."""
    rows = chosen(only, (NOTHING, *METHODS), "flower")
    configs = {
        method: read(preset, in_order([*SETTINGS, f"method={method}", *set, f"rounds={rounds}"])) for method in METHODS
    }
    end_as_by_interrupt()
    found = {row: idle(rounds) if row == NOTHING else voting(configs[row]) for row in rows}
    return [{"rounds of": row, **medians(each), "each": each} for row, each in found.items()]


def medians(rounds: list[dict[str, Any]]) -> dict[str, float | None]:
    columns = {name: [each[name] for each in rounds[1:] or rounds if name in each] for name in COLUMNS}
    return {name: statistics.median(values) if values else None for name, values in columns.items()}


def federation(folder: Path, app: str) -> LocalFederation:
    """A federation that runs a copy of the stopwatch app, which lies beside this file."""
    (folder / "app").mkdir()
    (folder / "app" / "pyproject.toml").write_text(app)
    (folder / "app" / f"{STOPWATCH}.py").write_text(Path(__file__).with_name(f"{STOPWATCH}.py").read_text())
    return LocalFederation(folder / "federation", NODES, app=folder / "app")


def idle(rounds: int) -> list[dict[str, Any]]:
    """Seconds of rounds in which clients do nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seconds.json"
        with federation(Path(folder), IDLE) as nodes:
            nodes.submit(rounds=str(rounds), nodes=str(NODES), out=str(out))
            while JOB not in nodes.programs.ended():
                time.sleep(0.5)
            if not out.is_file():
                raise DeploymentError(f"the idle app failed:\n{nodes.programs.tail(JOB)}")
        return [{"seconds": seconds} for seconds in json.loads(out.read_text())]


def voting(config: Config) -> list[dict[str, Any]]:
    """Seconds and bytes of the rounds of a federation that trains."""
    with tempfile.TemporaryDirectory() as name:
        run, experiment, nodes = Path(name) / "run", Path(name) / "experiment.toml", federation(Path(name), TRAINING)
        experiment.write_text(to_toml(as_table(config)))
        proxy = CountingProxy(nodes.port)
        nodes.proxy_ports = dict.fromkeys(range(NODES), proxy.port)
        with nodes:
            nodes.submit(experiment=str(experiment), out=str(run))
            rounds, passed = [], dict(proxy.passed)
            for snapshot in watch(nodes.follow(run, config.rounds, 0.1), config.rounds):
                before, passed = passed, dict(proxy.passed)
                rounds.append({name: snapshot.record[name] for name in MEASURED})
                rounds[-1] |= {f"{way}link_tcp_bytes": passed[way] - before[way] for way in passed}
        lines = [line.split() for file in Path(name).glob("run-*") for line in file.read_text().splitlines()]
    for number, each in enumerate(rounds, start=1):
        each["own_seconds"] = max(float(seconds) for round, seconds, _ in lines if int(round) == number)
    return rounds
