"""Every method on one preset, each at its best rate: a short search, a long run, one JSON file.

    python benchmarks/methods.py --preset cifar10-silo --runs runs --out results/methods-cifar10-silo.json

The search runs every rate of a method for a few rounds, and goes on with the one whose deployed model is the most
accurate then. Too few rounds mislead: after 4 of them, FedAvg looks best at a rate that loses by 7 points after 20.
Rates that were tried, for a few rounds or for all, are not run again, and a run that was cut off goes on where it
was. A method with long runs at two rates, because rates were added to its search, keeps the better one; `long` in the
file has both. `--seconds` stops before a run that would begin later than that, and `--rounds 0` searches alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from fedvote.paper.methods import CONTENDERS, Contender
from fedvote.runs.config import read
from fedvote.runs.experiment import run
from fedvote.runs.folder import RunFolder, environment
from fedvote.system.device import find_device

KEPT = ("round", "accuracy", "accuracy_float", "loss", "uplink_bytes", "downlink_bytes", "seconds")


def records(preset: str, settings: list[str], folder: Path) -> list[dict[str, Any]]:
    """The metrics of one run, from disk as far as they are there."""
    into = RunFolder(folder)
    for _ in run(read(preset, settings), into, resume=True):
        pass
    return [{name: line[name] for name in KEPT} for line in into.metrics()]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    found: dict[str, Any] = json.loads(options.out.read_text())["methods"] if options.out.exists() else {}
    searched = json.loads(options.searched.read_text()) if options.searched.exists() else {}
    for name in options.only or CONTENDERS:
        contender, tried = CONTENDERS[name], searched.setdefault(name, {})

        def run_for(rounds: int, rate: str, name: str = name, contender: Contender = contender) -> list[dict[str, Any]]:
            settings = [*contender.settings, f"{contender.key}={rate}", f"rounds={rounds}", *options.set]
            return records(options.preset, settings, options.runs / f"{name} {rate}".replace(" ", "-").lower())

        for rate in map(str, contender.rates):
            if time.monotonic() - began > options.seconds:
                return found
            if rate not in tried:
                tried[rate] = run_for(options.search, rate)[-1]["accuracy"]
                print(f"{name}: {contender.key} {rate} -> {tried[rate]:.4f}", flush=True)
                options.searched.write_text(json.dumps(searched, indent=2) + "\n")
        best = max(tried, key=lambda rate: tried[rate])
        long = found[name]["long"] if name in found else {}
        if best in long or options.rounds <= options.search or time.monotonic() - began > options.seconds:
            continue
        rounds = run_for(options.rounds, best)
        long[best] = rounds[-1]["accuracy"]
        print(f"{name}: {long[best]:.4f} at {contender.key} {best}", flush=True)
        if long[best] == max(long.values()):
            settings = [*contender.settings, f"{contender.key}={best}", f"rounds={options.rounds}", *options.set]
            found[name] = {"settings": settings, "rounds": rounds}
        search = {"key": contender.key, "rounds": options.search, "accuracy": tried}
        found[name] |= {"search": search, "long": long}
        write(options, found)
    return found


def write(options: argparse.Namespace, found: dict[str, Any]) -> None:
    ordered = {name: found[name] for name in CONTENDERS if name in found}
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}  # a note that somebody made
    made = {"preset": options.preset, "environment": environment(find_device("auto")), "methods": ordered}
    text = json.dumps(kept | made)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text + "\n")


def table(found: dict[str, Any]) -> str:
    lines = [f"{'method':18} {'rate':>7} {'rounds':>6} {'accuracy':>8} {'MB up':>8} {'MB down':>8}   a client, in all"]
    for name, one in found.items():
        last, clients = one["rounds"][-1], one.get("clients", 31)
        up, down = (sum(r[f"{way}link_bytes"] for r in one["rounds"]) / clients / 1e6 for way in ("up", "down"))
        rate = next(s for s in one["settings"] if s.startswith(one["search"]["key"])).partition("=")[2]
        lines.append(f"{name:18} {rate:>7} {last['round']:>6} {last['accuracy']:>8.4f} {up:>8.1f} {down:>8.1f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cifar10-silo")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--search", type=int, default=10, help="rounds of each rate of the search")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all runs")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--searched", type=Path, default=Path("runs/methods-searched.json"))
    parser.add_argument("--runs", type=Path, default=Path("runs/methods"))
    parser.add_argument("--out", type=Path, default=Path("results/methods-cifar10-silo.json"))
    options = parser.parse_args()
    options.searched.parent.mkdir(parents=True, exist_ok=True)
    found = measure(options)
    if found:
        print(table(found))


if __name__ == "__main__":
    main()
