"""What coding ballots and judging them add to a round: rounds with plain and with coded votes, and the rule alone.

    python benchmarks/overheads.py --set engine.compile=true --out results/overheads-cifar10-silo.json

The first round of each also records or compiles the step. The rule judges random ballots, on which it takes as long.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from fedvote.data import load
from fedvote.engines.simulate import Simulation
from fedvote.methods import FedVote
from fedvote.randomness import Key
from fedvote.reputation import Camps
from fedvote.reputation.reputation import Ballots
from fedvote.runs.config import read
from fedvote.runs.experiment import simulation
from fedvote.runs.folder import environment
from fedvote.system.device import find_device, synchronise

KEPT = ("seconds", "seconds_training", "uplink_bytes", "accuracy")


def rounds(made: Simulation) -> list[dict[str, Any]]:
    return [{name: snapshot.record[name] for name in KEPT} for snapshot in made.run()]


def judging(made: Simulation, repeat: int) -> list[float]:
    """Seconds that the rule takes for the ballots of a cohort."""
    assert isinstance(made.method, FedVote)
    device, D, K = made.device, made.network.D, made.cohort
    votes_KD = torch.randint(0, 2, (K, D), dtype=torch.int8, device=device) * 2 - 1
    rule, clients_K = Camps(), torch.arange(K, device=device)
    memory = {name: value.to(device) for name, value in rule.init(K).items()}
    seconds = []
    for _ in range(repeat):
        synchronise(device)
        began = time.perf_counter()
        rule.judge(memory, Ballots(votes_KD, clients_K, torch.zeros(D, device=device), made.method.alphabet), Key(0, 1))
        synchronise(device)
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cifar10-silo")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--rule-alone", action="store_true", help="time the judging of ballots, and run no rounds")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all runs")
    parser.add_argument("--out", type=Path, default=Path("results/overheads-cifar10-silo.json"))
    options = parser.parse_args()
    found: dict[str, Any] = {"preset": options.preset, "environment": environment(find_device("auto"))}
    data = load(read(options.preset, []).data.name)
    for coding in () if options.rule_alone else ("plain", "entropy"):
        settings = [f"rounds={options.rounds}", f"method.coding={coding}", *options.set]
        found[coding] = rounds(simulation(read(options.preset, settings), data=data))
        print(f"{coding}: {found[coding][-1]['seconds']:.3f} s in the last round", flush=True)
    made = simulation(read(options.preset, options.set), data=data)
    found |= {"camps_seconds": judging(made, options.rounds), "D": made.network.D, "clients": made.cohort}
    print(f"camps: {min(found['camps_seconds']):.4f} to {max(found['camps_seconds'][1:]):.4f} s after the first")
    options.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
