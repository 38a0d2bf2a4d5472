"""A federation of many clients over real connections, with TLS and a registered key for each.

The server is Flower's SuperLink with fedvote's app. The clients are threads of this process: each has a SuperNode's own
connection, and takes turns with fedvote's client; at most eight turns at a time. With churn, a fifth of the clients
changes after each round: they leave, come back, or are new. `grown_*` compares the last round with the
tenth: megabytes of the server's app, of the SuperLink and of its database, and files in the folder of the run.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedvote.engines.flower.flower_internals import CONNECTION_ERRORS, empty_context, node_connection
from fedvote.engines.flower.local_federation import DATABASE, SUPERLINK, LocalFederation
from fedvote.engines.flower.processes import descendants, end_as_by_interrupt
from fedvote.studies.bench import peak_memory
from fedvote.studies.rows import Rows, chosen

AT_ONCE = 8  # turns
POLL = 3.0  # seconds between two looks of a client, as a SuperNode does
SETTINGS = "partition=iid local.steps=2 local.batch=8 data.name=digits flower.poll=0.2"
CASES: dict[str, dict[str, Any]] = {
    "100 clients, a fifth of them changes": {"clients": 100, "rounds": 5, "first": 80, "changes": 20},
    "5 clients": {"clients": 5, "rounds": 50, "first": 5, "changes": 0},
}


@dataclass
class Crowd:
    """Clients as threads."""

    federation: LocalFederation
    turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    leaving: dict[int, threading.Event] = field(default_factory=dict)  # client that is here -> set to let it leave

    def come(self, number: int) -> None:
        self.leaving[number] = threading.Event()
        threading.Thread(target=self._live, args=(number, self.leaving[number]), daemon=True).start()

    def leave(self, number: int) -> None:
        self.leaving.pop(number).set()

    def _live(self, number: int, leaves: threading.Event) -> None:
        """Connect, and take turns until it is time to leave; after an error, connect again."""
        from fedvote.engines.flower.client_app import app

        assert self.federation.certificates is not None
        authority, key = self.federation.certificates.authority.read_bytes(), self.federation.key(number).read_bytes()
        context = empty_context(number)
        while not leaves.wait(POLL):
            with (
                suppress(*CONNECTION_ERRORS, RuntimeError),  # a key that left a moment ago is refused for a minute
                node_connection(f"127.0.0.1:{self.federation.port}", authority, key) as connection,
            ):
                while not leaves.wait(POLL):
                    if (message := connection.receive()) is not None:
                        with self.turns:
                            reply = app(message, context)
                        connection.reply(reply)


def bench(only: Sequence[str] = ()) -> Rows:
    """A row for each federation."""
    end_as_by_interrupt()
    return [{"federation": name, **measure(**CASES[name])} for name in chosen(only, CASES, "churn")]


def measure(clients: int, rounds: int, first: int, changes: int) -> dict[str, Any]:
    """Run a federation with this number of clients, of which the `first` are there at the start."""
    settings = f"{SETTINGS} federation.clients={clients} rounds={rounds} flower.quorum=0.7 flower.minimum=0.5"
    with tempfile.TemporaryDirectory() as name:
        run, nodes = Path(name) / "run", LocalFederation(Path(name) / "federation", clients, starts_nodes=False)
        with nodes:
            crowd, began = Crowd(nodes), time.monotonic()
            for number in range(first):
                crowd.come(number)
            nodes.submit(experiment="quickstart", set=settings, out=str(run))
            records, sizes = [], []
            for snapshot in nodes.follow(run, rounds, 0.2):
                records.append(snapshot.record)
                sizes.append(_sizes(nodes, run))
                change(crowd, clients, changes, snapshot.round)
            seconds = time.monotonic() - began
            for number in list(crowd.leaving):
                crowd.leave(number)
    return {
        "rounds": len(records), "seconds": seconds,
        "least_counted": min(len(record["counted"]) for record in records),
        "most_counted": max(len(record["counted"]) for record in records),
        "returned": sum(len(record.get("returned", ())) for record in records),
        "refused": sum(len(record.get("refused", ())) for record in records),
        **{f"grown_{name}": sizes[-1][name] - sizes[min(9, len(sizes) - 1)][name] for name in sizes[-1]},
        "each": [{**size, "seconds": record["seconds"], "counted": len(record["counted"]),
                  "absent": len(record.get("absent", ()))} for size, record in zip(sizes, records, strict=True)],
    }  # fmt: skip


def change(crowd: Crowd, clients: int, changes: int, round: int) -> None:
    """Let some clients leave and as many come, in turn: all get there, and those that left come back later."""
    here, away = sorted(crowd.leaving), [number for number in range(clients) if number not in crowd.leaving]
    leavers = [here[(7 * round + 3 * place) % len(here)] for place in range(min(changes, len(here)))]
    for number in dict.fromkeys(leavers):
        crowd.leave(number)
    for number in away[:changes]:
        crowd.come(number)


def _sizes(nodes: LocalFederation, run: Path) -> dict[str, float]:
    """Megabytes of memory and of the database, and the number of files in the run folder."""
    superlink = nodes.programs.running[SUPERLINK].pid
    memory = sorted(peak_memory.resident(process) / 1e6 for process in descendants(superlink))
    database = sum(file.stat().st_size for file in nodes.folder.glob(f"{DATABASE}*")) / 1e6
    return {
        "app_megabytes": memory[-1] if memory else 0.0,  # the largest program that the SuperLink has started
        "superlink_megabytes": peak_memory.resident(superlink) / 1e6,
        "database_megabytes": database,
        "files": float(len(list(run.iterdir()))),
    }
