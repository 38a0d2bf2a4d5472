"""Accuracy of the presets over seeds: runs them, several at a time, and writes one JSON file a setting.

    python benchmarks/accuracy.py cifar10-silo-binary --seeds 0 1 2 --at-once 3 --runs runs --out results

A run that was cut off goes on where it was; a setting is written when every seed has at least one round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

SETTINGS: dict[str, tuple[str, list[str]]] = {
    "fashion-mnist-binary": ("fashion-mnist", []),
    "fashion-mnist-ternary": ("fashion-mnist", ["method.votes=ternary"]),
    "cifar10-silo-binary": ("cifar10-silo", []),
    "cifar10-silo-ternary": ("cifar10-silo", ["method.votes=ternary"]),
    "cifar10-device-binary": ("cifar10-device", []),
    "femnist-device-binary": ("femnist-device", ["rounds=40"]),
    "digits-binary": ("quickstart", []),
    "digits-ternary": ("quickstart", ["method.votes=ternary"]),
    "digits-fedavg": ("quickstart", ["method=fedavg"]),
    "digits-fedpaq": ("quickstart", ["method=fedpaq"]),
    "digits-fedpaq-4": ("quickstart", ["method=fedpaq", "method.levels=4"]),
    "digits-signsgd": ("quickstart", ["method=signsgd"]),
    "digits-signum": ("quickstart", ["method=signum"]),
    "digits-fetchsgd": ("quickstart", ["method=fetchsgd", "method.columns=1000"]),
    "digits-eden": ("quickstart", ["method=eden"]),
}
KEPT = (
    "round",
    "accuracy",
    "accuracy_calibrated",
    "accuracy_float",
    "loss",
    "uplink_bytes",
    "downlink_bytes",
    "seconds",
)


def command(setting: str, seed: int, folder: Path) -> list[str]:
    preset, changes = SETTINGS[setting]
    sets = [argument for change in changes for argument in ("--set", change)]
    return [
        sys.executable,
        "-m",
        "fedvote",
        "run",
        preset,
        *sets,
        "--seed",
        str(seed),
        "--out",
        str(folder),
        "--resume",
    ]


def run_all(jobs: list[tuple[str, int]], runs: Path, at_once: int) -> None:
    waiting, running = list(jobs), []
    threads = max(1, (os.cpu_count() or 1) // at_once)  # processes that fight for cores are many times slower
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    while waiting or running:
        while waiting and len(running) < at_once:
            setting, seed = waiting.pop(0)
            folder = runs / f"{setting}-{seed}"
            folder.parent.mkdir(parents=True, exist_ok=True)
            log = (runs / f"{folder.name}.log").open("w")
            process = subprocess.Popen(command(setting, seed, folder), stdout=log, stderr=log, env=environment)
            running.append((process, folder))
        time.sleep(0.2)
        for process, folder in list(running):
            if process.poll() is not None:
                running.remove((process, folder))
                print(folder.name, "exit", process.returncode, flush=True)


def summary(setting: str, seeds: list[int], runs: Path) -> dict[str, Any]:
    folders = [runs / f"{setting}-{seed}" for seed in seeds]
    records = [[json.loads(line) for line in (f / "metrics.jsonl").read_text().splitlines()] for f in folders]
    done = min(map(len, records))
    final = {
        name: [round(statistics.mean(values), 4), round(statistics.stdev(values) if len(values) > 1 else 0.0, 4)]
        for name in ("accuracy", "accuracy_calibrated", "accuracy_float")
        for values in [[record[done - 1][name] for record in records]]
    }
    return {
        "setting": setting,
        "rounds": done,
        "mean_and_deviation_at_last_round": final,
        "environment": json.loads((folders[0] / "environment.json").read_text()),
        "config": tomllib.loads((folders[0] / "config.toml").read_text()),
        "seeds": {
            seed: [{name: _short(r[name]) for name in KEPT} for r in record[:done]]
            for seed, record in zip(seeds, records, strict=True)
        },
    }


def _short(value: float) -> float:
    return round(value, 5) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="+", choices=SETTINGS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    run_all([(s, seed) for s in options.settings for seed in options.seeds], options.runs, options.at_once)
    options.out.mkdir(parents=True, exist_ok=True)
    for setting in options.settings:
        found = summary(setting, options.seeds, options.runs)
        (options.out / f"{setting}.json").write_text(json.dumps(found) + "\n")
        print(setting, "round", found["rounds"], found["mean_and_deviation_at_last_round"])


if __name__ == "__main__":
    main()
