"""Whether fast ways of computing a run change how good its network is: the same runs, clients one by one in float32,
as they come, and compiled.

    python benchmarks/fast_paths.py --seeds 0 1 2 --out results/fast-paths.json

Each run is one entry of the file; what is there is not run again. Where the arithmetic is the same the bits are, which
the tests see to; bfloat16, and sums in another order, make other bits, and should make no other accuracy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from fedvote.config import read
from fedvote.data import load
from fedvote.engines.simulate.device import find_device
from fedvote.experiment import simulation
from fedvote.folder import environment

JOBS: dict[str, list[str]] = {
    "FedVote, LeNet-5, Fashion-MNIST": ["fashion-mnist", "rounds=8", "method.coding=plain"],
    "FedAvg, small CNN, CIFAR-10": [
        "cifar10-silo",
        "rounds=30",
        "federation.clients=50",
        "model=small-cnn",
        "method=fedavg",
        "method.lr=0.02",
        "method.optimizer=SGD",
        "local.batch=10",
    ],
}
WAYS: dict[str, list[str]] = {
    "one by one, float32": ["engine.stack=1", "engine.precision=float32"],
    "as it comes": [],
    "compiled": ["engine.compile=true"],
}


def measure(preset: str, settings: list[str]) -> dict[str, Any]:
    """Accuracy after the last round, and seconds of a usual one."""
    config = read(preset, [*settings, "engine.evaluate_every=1000"])
    if config.data.name not in _loaded:
        _loaded[config.data.name] = load(config.data.name)
    records = [snapshot.record for snapshot in simulation(config, data=_loaded[config.data.name]).run()]
    seconds = statistics.median(record["seconds_training"] for record in records)
    return {"settings": settings, "accuracy": round(records[-1]["accuracy"], 4), "seconds": round(seconds, 4)}


_loaded: dict[str, Any] = {}


def table(runs: dict[str, Any]) -> str:
    lines = [f"{'job':32} {'way':22} {'accuracy':>16} {'s / round':>10}"]
    for job in JOBS:
        for way in WAYS:
            found = [run for name, run in runs.items() if name.startswith(f"{job}/{way}/")]
            if found:
                values = [100 * run["accuracy"] for run in found]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                seconds = statistics.median(run["seconds"] for run in found)
                lines.append(f"{job:32} {way:22} {statistics.mean(values):9.1f} ± {spread:.1f} % {seconds:10.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run later than that")
    parser.add_argument("--out", type=Path, default=Path("results/fast-paths.json"))
    options = parser.parse_args()
    done = json.loads(options.out.read_text()) if options.out.exists() else {"runs": {}}
    done["environment"] = environment(find_device("auto"))
    began = time.monotonic()
    for job, (preset, *settings) in JOBS.items():
        for seed in options.seeds:
            for way, changes in WAYS.items():
                name = f"{job}/{way}/{seed}"
                if name in done["runs"] or time.monotonic() - began > options.seconds:
                    continue
                done["runs"][name] = measure(preset, [*settings, *changes, f"seed={seed}"])
                options.out.write_text(json.dumps(done) + "\n")
                print(f"{name}: {done['runs'][name]['accuracy']:.4f}", flush=True)
    print(table(done["runs"]))


if __name__ == "__main__":
    main()
