"""CPU seconds of a small client's turn over Flower: with a new process for each turn, and with one that stays.

`turn_cpu_seconds` is the median CPU time of the process that takes the turn, from the end of its last turn, or from its
start, to the reply. `node_cpu_seconds` is the CPU time of all programs of a client, polls included, by turn. The first
round is left out: clients join in it, and the process that stays imports everything.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedvote.engines.flower.local_federation import node_name
from fedvote.engines.flower.processes import descendants
from fedvote.runs.config import read
from fedvote.runs.progress import watch
from fedvote.runs.toml_tables import in_order
from fedvote.studies.bench.flower import NODES, SETTINGS, TRAINING, federation
from fedvote.studies.rows import Rows, chosen

HOW = {"a process for each turn": False, "a process that stays": True}


def bench(preset: str = "quickstart", set: Sequence[str] = (), rounds: int = 6, only: Sequence[str] = ()) -> Rows:
    """A row for each way to run a client."""
    settings = in_order([*SETTINGS, *set, f"rounds={rounds}"])
    read(preset, settings)  # fail on mistakes before anything is started
    rows = {how: measure(preset, settings, rounds, warm=HOW[how]) for how in chosen(only, HOW, "turn")}
    return [{"client with": how, **row} for how, row in rows.items()]


def measure(preset: str, settings: Sequence[str], rounds: int, *, warm: bool, source: str = "") -> dict[str, Any]:
    """Run a federation on this machine, and measure its clients from the second round on.

    `source`: the folder src of another version of fedvote, which then takes the turns.
    """
    with tempfile.TemporaryDirectory() as name:
        run, nodes = Path(name) / "run", federation(Path(name), TRAINING)
        nodes.warm, spent, seconds = warm, list[float](), list[float]()
        if source:
            nodes.programs.environment = {**nodes.programs.environment, "PYTHONPATH": source}
        with nodes:
            clients = [NodeCpu(nodes.programs.running[node_name(number)].pid) for number in range(NODES)]
            nodes.submit(experiment=preset, set=" ".join(settings), out=str(run))
            for snapshot in watch(nodes.follow(run, rounds, 0.1), rounds):
                spent.append(sum(client.seconds() for client in clients))
                seconds.append(snapshot.record["seconds"])
        lines = [line.split() for file in Path(name).glob("run-*") for line in file.read_text().splitlines()]
    turns = [float(cpu) for round, _, cpu in lines if int(round) > 1]
    return {
        "rounds": rounds,
        "turn_cpu_seconds": statistics.median(turns),
        "node_cpu_seconds": (spent[-1] - spent[0]) / (NODES * (rounds - 1)),
        "round_seconds": statistics.median(seconds[1:]),
        "turns": turns,
    }


@dataclass
class NodeCpu:
    """The CPU seconds of a process and of all that it started, which may have ended since."""

    process: int
    _seen: dict[int, float] = field(default_factory=dict)

    def seconds(self) -> float:
        """Processes that ended between two calls count with what their parent has waited for."""
        for pid in [self.process, *descendants(self.process)]:
            self._seen[pid] = max(self._seen.get(pid, 0.0), _own_seconds(pid))
        return sum(self._seen.values())


def _own_seconds(pid: int) -> float:
    """CPU seconds of one process, also while nobody has waited for its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system, in clock ticks
