"""What a round over Flower costs: seconds above the client's own work, and bytes measured three ways.

    python benchmarks/flower.py time  --out results/flower-time.json
    python benchmarks/flower.py bytes --out results/flower-bytes.json

time: three nodes, beside an app that does nothing. bytes: VGG-7, ballots and FedAvg's floats. Payload is the length of
the frames, message that of Flower's objects around them, TCP what passed through a socket between node and server, TLS
and polling included, counted by a proxy before the server.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flwr
import torch

import fedvote
from fedvote.engines.flower.local_federation import JOB, LocalFederation, free_port
from fedvote.runs.config import read
from fedvote.runs.toml_tables import as_table, to_toml

HERE = Path(__file__).parent
NODES = 3
SMALL = ("federation.clients=3", "partition=iid", "flower.deadline=300")
VGG7 = ("federation.clients=3", "model=vgg7", "local.steps=2", "local.batch=16", "flower.deadline=550", "flower.poll=1")


@dataclass
class Proxy:
    """A port before the server's that counts what passes."""

    target: int
    port: int = field(default_factory=free_port)
    up: int = 0
    down: int = 0

    def start(self) -> Proxy:
        listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return self

    def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pump, args=(client, server, "up"), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, "down"), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        try:
            while chunk := source.recv(1 << 16):
                setattr(self, way, getattr(self, way) + len(chunk))
                sink.sendall(chunk)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()


@contextmanager
def federation(app: Path | None, configs: dict[int, str], proxies: bool = False) -> Iterator[LocalFederation]:
    with tempfile.TemporaryDirectory() as folder:
        made = LocalFederation(Path(folder) / "federation", NODES, app=app)
        made.node_configs = configs
        made.proxies = [Proxy(made.port).start() for _ in range(NODES)] if proxies else []  # type: ignore[attr-defined]
        made.proxy_ports = {number: proxy.port for number, proxy in enumerate(made.proxies)}  # type: ignore[attr-defined]
        with made:
            yield made


def finish(made: LocalFederation) -> None:
    while JOB not in made.programs.ended():
        time.sleep(0.5)


def idle(rounds: int) -> list[float]:
    """Seconds of each round in which nobody does anything."""
    with federation(HERE / "flower_apps" / "idle", {}) as made:
        out = made.folder / "seconds.json"
        made.programs.start(
            JOB,
            ["flwr", "run", str(made.app), "local-federation", "--stream", "--run-config",
             f'rounds={rounds} nodes={NODES} out="{out}"'],
            made.folder,
        )  # fmt: skip
        finish(made)
        return list(json.loads(out.read_text()))


def voting(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each round of a federation that trains, and of its slowest client's own work."""
    with tempfile.TemporaryDirectory() as watches:
        configs = {number: f'watch="{watches}/{number}"' for number in range(NODES)}
        with federation(HERE / "flower_apps" / "timed", configs) as made:
            records = job(made, read("quickstart", [*SMALL, f"rounds={rounds}"]))
        lines = [line.split() for number in range(NODES) for line in (Path(watches) / str(number)).open()]
    work = [max(float(seconds) for round, seconds in lines if int(round) == r["round"]) for r in records]
    return [record["seconds"] for record in records], work


def job(made: LocalFederation, config: Any, **options: str) -> list[dict[str, Any]]:
    experiment, run = made.folder / "experiment.toml", made.folder / "run"
    experiment.write_text(to_toml(as_table(config)))
    made.submit(experiment=str(experiment), out=str(run), **options)
    return [snapshot.record for snapshot in made.follow(run, config.rounds, 0.1)]


def measure_time(rounds: int) -> dict[str, Any]:
    nothing = idle(rounds)[1:]
    seconds, work = (values[1:] for values in voting(rounds))
    above = [whole - own for whole, own in zip(seconds, work, strict=True)]
    return {
        "nodes": NODES,
        "settings": list(SMALL),
        "idle_seconds": nothing,
        "round_seconds": seconds,
        "own_work_seconds": work,
        "above_own_work_seconds": above,
        "median_idle": statistics.median(nothing),
        "median_above_own_work": statistics.median(above),
    }


def measure_bytes(rounds: int) -> dict[str, Any]:
    made = {name: bytes_of(name, rounds) for name in ("fedvote", "fedavg")}
    tcp = {name: statistics.mean(row["tcp_up"] for row in rows) for name, rows in made.items()}
    by_round = [a["tcp_up"] / v["tcp_up"] for a, v in zip(made["fedavg"], made["fedvote"], strict=True)]
    return {
        "settings": list(VGG7),
        **made,
        "tcp_up_ratio_by_round": by_round,
        "tcp_up_ratio": tcp["fedavg"] / tcp["fedvote"],
    }


def bytes_of(method: str, rounds: int) -> list[dict[str, float]]:
    """A client's bytes in each round: the frame, Flower's message around it, and the socket."""
    data = HERE / "flower_images.py"
    configs = {number: f'data="{data}:images"' for number in range(NODES)}
    with federation(None, configs, proxies=True) as made:
        config = read("quickstart", [*VGG7, f"rounds={rounds}", f"method={method}"])
        proxies: list[Proxy] = made.proxies  # type: ignore[attr-defined]
        rows, experiment, run = [], made.folder / "experiment.toml", made.folder / "run"
        experiment.write_text(to_toml(as_table(config)))
        made.submit(experiment=str(experiment), out=str(run), data=f"{data}:dataset")
        while not (run / "roster.json").is_file() or len(json.loads((run / "roster.json").read_text())) < NODES:
            time.sleep(0.05)  # all are there now, and round 1 begins
        up, down = sum(p.up for p in proxies), sum(p.down for p in proxies)
        for snapshot in made.follow(run, rounds, 0.1):
            record = snapshot.record
            up, up_before = sum(p.up for p in proxies), up
            down, down_before = sum(p.down for p in proxies), down
            rows.append(
                {
                    "round": record["round"],
                    "frame_up": record["uplink_bytes"] / NODES,
                    "message_up": record["uplink_message_bytes"] / NODES,
                    "tcp_up": (up - up_before) / NODES,
                    "frame_down": record["downlink_bytes"] / NODES,
                    "message_down": record["downlink_message_bytes"] / NODES,
                    "tcp_down": (down - down_before) / NODES,
                    "bits_per_weight_up": record["uplink_bits_per_weight"],
                    "seconds": record["seconds"],
                }
            )
            print(method, json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("time", "bytes"))
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that programs are stopped then, too
    measured = measure_time(options.rounds or 7) if options.what == "time" else measure_bytes(options.rounds or 3)
    about = {
        "fedvote": fedvote.__version__,
        "flwr": flwr.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    text = json.dumps({"environment": about, **measured}, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
