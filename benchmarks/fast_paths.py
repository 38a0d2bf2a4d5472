"""Whether fast ways of computing a run change how good its network is: the same runs, clients one by one in float32,
as they come, and compiled.

    python benchmarks/fast_paths.py --seeds 0 1 2 --out results/fast-paths.json

Each run is one entry of the file; what is there is not run again. Where the arithmetic is the same the bits are, which
the tests see to; bfloat16, and sums in another order, make other bits, and should make no other accuracy. That is the
mean over the second half of a run, since from one round to the next it moves by more than there is to be seen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

from fedvote.data import load
from fedvote.runs.config import read
from fedvote.runs.experiment import simulation
from fedvote.runs.folder import environment
from fedvote.system.device import find_device

JOBS: dict[str, list[str]] = {
    "FedVote, LeNet-5, Fashion-MNIST": ["fashion-mnist", "rounds=12", "method.coding=plain"],
    "FedAvg, small CNN, CIFAR-10": [
        "cifar10-silo",
        "rounds=16",
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
    """Accuracy after each round, and its mean over the second half of them."""
    config = read(preset, settings)
    if config.data.name not in _loaded:
        _loaded[config.data.name] = load(config.data.name)
    run = simulation(config, data=_loaded[config.data.name])
    rounds = [round(snapshot.record["accuracy"], 4) for snapshot in run.run()]
    judged = statistics.mean(rounds[len(rounds) // 2 :])
    return {"settings": settings, "accuracy": round(judged, 5), "rounds": rounds}


_loaded: dict[str, Any] = {}


def table(runs: dict[str, Any]) -> str:
    lines = [f"{'job':32} {'way':22} {'accuracy':>16}"]
    for job, way in itertools.product(JOBS, WAYS):
        values = [100 * run["accuracy"] for name, run in runs.items() if name.startswith(f"{job}/{way}/")]
        if values:
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            lines.append(f"{job:32} {way:22} {statistics.mean(values):9.2f} ± {spread:.2f} %")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("results/fast-paths.json"))
    options = parser.parse_args()
    done = json.loads(options.out.read_text()) if options.out.exists() else {"runs": {}}
    done["environment"] = environment(find_device("auto"))
    for (job, (preset, *settings)), seed, way in itertools.product(JOBS.items(), options.seeds, WAYS):
        name = f"{job}/{way}/{seed}"
        if name not in done["runs"]:
            done["runs"][name] = measure(preset, [*settings, *WAYS[way], f"seed={seed}"])
            options.out.write_text(json.dumps(done) + "\n")
            print(f"{name}: {done['runs'][name]['accuracy']:.4f}", flush=True)
    print(table(done["runs"]))


if __name__ == "__main__":
    main()
