"""The server's numbers in Prometheus' text format, and a health check, on a local port: /metrics and /health.

The job's option `metrics` names the port. The page is for this machine alone; a proxy may offer it to others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fedvote.errors import ConfigError

Record = Mapping[str, Any]
SLACK = 60.0  # seconds beyond the deadline without a sign of life, after which the server is ill
EVENTS = ("refused", "failed", "absent", "late", "second", "left_out")  # of a record: clients by what happened to them
LAST = {  # a key of the last record -> what it is
    "round": "The last round that closed.",
    "accuracy": "Accuracy of the deployed network after the last evaluated round.",
    "loss": "Loss of the deployed network after the last evaluated round.",
    "seconds": "Seconds of the last round.",
}
TOTALS = {
    "uplink_bytes": "Bytes of frames from clients.",
    "downlink_bytes": "Bytes of frames to clients.",
    "uplink_message_bytes": "Bytes of Flower's messages from clients.",
    "downlink_message_bytes": "Bytes of Flower's messages to clients.",
}


@dataclass
class RunNumbers:
    """What the page shows: totals over the run's records, and who is online."""

    online: Callable[[], int]  # clients that are online
    strangers: Callable[[], int]  # nodes that are online and have no vote
    alive: Callable[[], float]  # seconds since the server's last sign of life
    clients: int  # of the federation
    patience: float  # seconds without a sign of life, after which the server is ill
    last: dict[str, float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("rounds", *TOTALS, *EVENTS), 0.0))
    counted: int = 0  # ballots in the last round
    closed_at: float = 0.0  # Unix time

    def add(self, record: Record, closed_at: float | None = None) -> None:
        """Add a round's record."""
        self.last |= {name: float(record[name]) for name in LAST if record.get(name) is not None}
        self.totals["rounds"] += 1
        for name in TOTALS:
            self.totals[name] += float(record.get(name, 0))
        for event in EVENTS:
            self.totals[event] += len(record.get(event, ()))
        self.counted, self.closed_at = len(record.get("counted", ())), closed_at or time.time()

    @property
    def healthy(self) -> bool:
        return self.alive() <= self.patience

    def lines(self) -> Iterator[str]:
        """The page, in Prometheus' text format 0.0.4."""
        yield from _metric("clients", "gauge", "Clients of the federation.", self.clients)
        yield from _metric("clients_online", "gauge", "Clients that are online.", self.online())
        yield from _metric("strangers_online", "gauge", "Nodes that are online without a vote.", self.strangers())
        yield from _metric("healthy", "gauge", "1 if the server gave a sign of life in time.", int(self.healthy))
        yield from _metric("rounds_total", "counter", "Rounds that closed.", self.totals["rounds"])
        yield from _metric("ballots_counted", "gauge", "Ballots in the last round.", self.counted)
        for name, about in LAST.items():
            if name in self.last:
                yield from _metric("last_" + name, "gauge", about, self.last[name])
        if self.closed_at:
            yield from _metric("last_round_timestamp_seconds", "gauge", "When it closed, in Unix time.", self.closed_at)
        for name, about in TOTALS.items():
            yield from _metric(name + "_total", "counter", about, self.totals[name])
        for event in EVENTS:
            yield from _metric(
                f"{event}_total", "counter", f"Clients that were '{event}' in a round.", self.totals[event]
            )


def _metric(name: str, kind: str, about: str, value: float) -> Sequence[str]:
    return f"# HELP fedvote_{name} {about}", f"# TYPE fedvote_{name} {kind}", f"fedvote_{name} {float(value)!r}"


def serve_page(numbers: RunNumbers, port: int) -> ThreadingHTTPServer:
    """Serve the page on 127.0.0.1 until `shutdown`."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, "".join(f"{line}\n" for line in numbers.lines()), "text/plain; version=0.0.4")
            elif self.path == "/health":
                self._answer(200 if numbers.healthy else 503, "ok\n" if numbers.healthy else "no sign of life\n")
            else:
                self._answer(404, "there is /metrics and /health\n")

        def _answer(self, status: int, text: str, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing: a scrape every few seconds would fill the log."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"metrics is {port}, expected a free port of this machine, 1 to 65535: {error}") from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
