"""Run folders with made-up numbers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.report.pages import MakeRun


def config_text(clients: int, rounds: int, method: str) -> str:
    return f"""seed = 0
rounds = {rounds}
[data]
name = "digits"
[partition]
name = "dirichlet"
alpha = 0.5
[federation]
clients = {clients}
cohort = {clients}
[model]
name = "lenet5"
[method]
name = "{method}"
lr = 0.03
steps = 40
batch = 100
[method.optimizer_options]
"""


def record(index: int, clients: int, ceiling: float, nbytes: int, draw: random.Random) -> dict[str, Any]:
    accuracy = ceiling - 0.6 * 0.6**index + draw.uniform(-0.01, 0.01)
    bits = nbytes / 8000
    return {
        "round": index,
        "accuracy": accuracy,
        "accuracy_calibrated": accuracy - 0.012,
        "accuracy_float": accuracy + 0.015,
        "accuracy_float_calibrated": accuracy + 0.009,
        "loss": 2.0 * 0.8**index,
        "uplink_bytes": nbytes * clients,
        "downlink_bytes": 4 * nbytes * clients,
        "uplink_bits_per_weight": bits,
        "downlink_bits_per_weight": 4 * bits,
        "seconds": 1.5,
        "clients": list(range(clients)),
    }


def make(
    folder: Path, clients: int = 10, classes: int = 10, rounds: int = 10, hostile: int = 0, method: str = "some-method",
    ceiling: float = 0.97, nbytes: int = 8000, weights: bool = False, **extra: Any,
) -> Path:  # fmt: skip
    """A finished run; `extra` is added to each of its rounds."""
    draw = random.Random(folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    bad = sorted(draw.sample(range(clients), hostile))
    lines = []
    for index in range(1, rounds + 1):
        line = record(index, clients, ceiling, nbytes, draw) | extra
        if weights:
            raw = [draw.uniform(0.8, 1.2) * (0.7**index if client in bad else 1) for client in range(clients)]
            line["vote_weight"] = {str(client): value / sum(raw) for client, value in enumerate(raw)}
        lines.append(json.dumps(line) + "\n")
    counts = [[int(60 * draw.gammavariate(0.4, 1)) for _ in range(classes)] for _ in range(clients)]
    names = [str(index) for index in range(classes)]
    (folder / "config.toml").write_text(config_text(clients, rounds, method))
    (folder / "metrics.jsonl").write_text("".join(lines))
    (folder / "clients.json").write_text(json.dumps({"classes": names, "counts": counts, "hostile": bad}))
    return folder


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    return lambda name="run", **options: make(tmp_path / name, **options)
