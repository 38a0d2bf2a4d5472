"""Seconds to an accuracy over slow links: a federation of real processes, 1 Mbit/s up and 10 Mbit/s down a client.

Every client has a proxy of its own, which is its link. A run ends with the first round whose deployed model has the
accuracy on held-out images. Seconds are those of its rounds: training, coding, transfer and evaluation. Bytes are all
TCP traffic of a client in a round, with TLS and polling, averaged over clients and over rounds from the second on:
clients join in the first.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedvote.engines.flower.local_federation import LocalFederation
from fedvote.engines.flower.processes import end_as_by_interrupt
from fedvote.runs.config import Config, read
from fedvote.runs.progress import watch
from fedvote.runs.toml_tables import as_table, in_order, to_toml
from fedvote.studies.bench.counting_proxy import CountingProxy
from fedvote.studies.experiments.broadcast_levels import LEVELS
from fedvote.studies.experiments.compared_methods import ROUNDED
from fedvote.studies.rows import Rows, chosen

NODES, TARGET = 4, 0.84
MEGABIT = 1e6 / 8  # bytes
LINK = {"up": 1 * MEGABIT, "down": 10 * MEGABIT}
SETTINGS = (
    f"federation.clients={NODES}",
    "local.steps=10",
    "local.batch=50",
    "flower.deadline=550",
    "data.validation=0.03",  # 1,800 images; on all test images, evaluation would take most of a round
)
VOTES = ("method.lr=0.1",)  # better than 0.03, the preset's, with so few steps
FLOAT = ("method.lr=0.001",)
CONTENDERS: dict[str, tuple[str, ...]] = {
    "FedVote, 5 levels": (*LEVELS["5 carried, changes"], *VOTES),
    "FedVote, all levels": VOTES,
    "FedPAQ": ("method=fedpaq", "method.bucket=512", *FLOAT),
    "FedPAQ, rounded down": ("method=fedpaq", "method.bucket=512", *ROUNDED, *FLOAT),
    "FedAvg": ("method=fedavg", *FLOAT),
    "FedAvg, rounded down": ("method=fedavg", *ROUNDED, *FLOAT),
}


def bench(preset: str = "fashion-mnist", set: Sequence[str] = (), rounds: int = 20, only: Sequence[str] = ()) -> Rows:
    """A row for each method, all by the same links."""
    configs = {
        row: read(preset, in_order([*SETTINGS, *CONTENDERS[row], *set, f"rounds={rounds}"]))
        for row in chosen(only, CONTENDERS, "slow-link")
    }
    end_as_by_interrupt()
    return [{"method": row, **summary(each), "each": each} for row, each in ((r, run(c)) for r, c in configs.items())]


def run(config: Config) -> list[dict[str, Any]]:
    """The rounds up to the accuracy: seconds, accuracy, and bytes of one client."""
    with tempfile.TemporaryDirectory() as name:
        folder, experiment = Path(name) / "run", Path(name) / "experiment.toml"
        experiment.write_text(to_toml(as_table(config)))
        nodes = LocalFederation(Path(name) / "federation", config.federation.clients)
        proxies = [CountingProxy(nodes.port, LINK) for _ in range(nodes.nodes)]
        nodes.proxy_ports = {number: proxy.port for number, proxy in enumerate(proxies)}
        rounds: list[dict[str, Any]] = []
        with nodes:
            nodes.submit(experiment=str(experiment), out=str(folder))
            passed = passed_by(proxies)
            for snapshot in watch(nodes.follow(folder, config.rounds, 0.1), config.rounds):
                before, passed = passed, passed_by(proxies)
                sent = {f"{way}link_tcp_bytes": (passed[way] - before[way]) / len(proxies) for way in passed}
                rounds.append({name: snapshot.record[name] for name in ("round", "accuracy", "seconds")} | sent)
                if rounds[-1]["accuracy"] >= TARGET:
                    break
    return rounds


def passed_by(proxies: Sequence[CountingProxy]) -> dict[str, int]:
    return {way: sum(proxy.passed[way] for proxy in proxies) for way in LINK}


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Seconds to the accuracy, or None if no round has it; means over rounds of the rest."""
    later = rounds[1:] or rounds
    means = {f"{way}link_tcp_bytes": statistics.fmean(each[f"{way}link_tcp_bytes"] for each in later) for way in LINK}
    reached, seconds = rounds[-1]["accuracy"] >= TARGET, sum(each["seconds"] for each in rounds)
    return {
        "rounds": len(rounds),
        "accuracy": rounds[-1]["accuracy"],
        f"seconds to {TARGET:.0%}": seconds if reached else None,
        "seconds a round": statistics.fmean(each["seconds"] for each in later),
        **means,
    }
