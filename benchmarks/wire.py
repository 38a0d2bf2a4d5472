"""Bytes on the wire in real training: entropy-coded ballots beside plain bits, and how coarse a tally may be.

    python benchmarks/wire.py coding cifar10-silo --rounds 40 --out results/wire-cifar10-silo.json
    python benchmarks/wire.py grid fashion-mnist --rounds 20 --out results/wire-grid.json

`coding`: two runs of one seed that differ in how votes are sent, and for every round the cross-entropy of the ballots
against the broadcast soft vote, which no code that knows only the broadcast can beat on average. Ours knows the lots
that clients round by as well, and does.
`grid`: runs whose votes are weighted (reputation `proportional`), by how many levels their tallies are rounded to.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from fedvote.core import State
from fedvote.methods import FedVote
from fedvote.randomness import Key
from fedvote.reputation import Uniform
from fedvote.reputation.reputation import Ballots, Verdict
from fedvote.runs.config import read
from fedvote.runs.experiment import simulation
from fedvote.runs.folder import environment
from fedvote.system.device import find_device

GRIDS = (65, 513, 4097, 32767)
KEPT = ("round", "accuracy", "accuracy_float", "uplink_bits_per_weight", "downlink_bits_per_weight", "uplink_bytes",
        "downlink_bytes", "seconds_training")  # fmt: skip


@dataclass(frozen=True)
class Listening(Uniform):
    """One client, one vote; and a note of what the ballots of each round cost at least."""

    heard: list[float] = field(default_factory=list, compare=False)

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        # -1/D sum_i log2 p(w_i), p the probability that the soft vote gives to the vote
        probability = ((1 + row * ballots.soft_D) / 2 for row in ballots.votes_KD)
        bits = [float(-p.log2().mean(dtype=torch.float64)) for p in probability]
        self.heard.append(sum(bits) / len(bits))
        return super().judge(memory, ballots, key)


def rounds(preset: str, settings: list[str], device: str) -> list[dict[str, Any]]:
    made = simulation(read(preset, settings), device)
    heard: list[float] = []
    if (
        isinstance(made.method, FedVote)
        and made.method.votes == "binary"
        and isinstance(made.method.reputation, Uniform)
    ):
        made = replace(made, method=replace(made.method, reputation=Listening(heard)))
    found = []
    for snapshot in made.run():
        found.append({name: snapshot.record[name] for name in KEPT})
        if heard:
            found[-1]["cross_entropy_bits_per_weight"] = heard[-1]
        line = " ".join(f"{name} {value:.4g}" for name, value in found[-1].items())
        print(" ".join(settings), line, flush=True)
    return found


def mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["coding", "grid"])
    parser.add_argument("preset")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    common = [f"rounds={options.rounds}", *options.set]
    variants = {
        "coding": {coding: [f"method.coding={coding}"] for coding in ("entropy", "plain")},
        "grid": {str(g): ["method.reputation=proportional", f"method.grid={g}"] for g in GRIDS},
    }[options.what]
    runs = {name: rounds(options.preset, [*common, *settings], options.device) for name, settings in variants.items()}
    where = environment(find_device(options.device))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"preset": options.preset, "environment": where, "runs": runs}) + "\n")
    for name, rows in runs.items():
        numbers = {key: mean(rows, key) for key in rows[0] if key.endswith("per_weight")}
        text = ", ".join(f"{key} {value:.4f}" for key, value in numbers.items())
        print(f"{name}: accuracy {rows[-1]['accuracy']:.4f} after {len(rows)} rounds; on average {text}")


if __name__ == "__main__":
    main()
