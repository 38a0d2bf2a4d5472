"""Accuracy among hostile clients: attacks against rules, beside an oracle that counts the honest alone.

    python benchmarks/byzantine.py camps --hostile 15 --seeds 0 1 --out results/byzantine.json
    python benchmarks/byzantine.py --table --out results/byzantine.json

Each run is one entry of the file: what is there is not run again, so that a table can be made bit by bit.
`--seconds` stops before a run that would begin later than that. A rule for float models is run at another learning rate
as RULE@RATE, such as median@0.0003.

`oracle` counts the honest clients alone. `oracle cut` is what the paper's authors ran: votes of all are weighed, by how
often they agree with the plurality of the honest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from authors import OracleCut
from remembered import Remembered, Turns

from fedvote.attacks.random import Random
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.methods import FedVote
from fedvote.network.network import Network
from fedvote.paper.hostile import RULES, settings_of
from fedvote.runs.config import read
from fedvote.runs.experiment import simulation
from fedvote.runs.folder import environment
from fedvote.system.device import find_device

ATTACKS: dict[str, tuple[str, ...]] = {
    "none": (),
    "inverse": ("attack=inverse",),
    "label-flip": ("attack=label-flip",),
    "random": ("attack=random",),
    "omniscient": ("attack=omniscient",),
    "sleeper": ("attack=sleeper",),
    "partial 30 %": ("attack=partial", "attack.share=0.3"),
    "partial 50 %": ("attack=partial", "attack.share=0.5"),
    "partial 70 %": ("attack=partial", "attack.share=0.7"),
    "colluders": ("attack=colluders",),
    "min-max": ("attack=min-max",),
    "copycat": ("attack=copycat",),
    "copycat 30 %": ("attack=copycat", "attack.share=0.3"),
    "copycat 10 %": ("attack=copycat", "attack.share=0.1"),
    "copycat of 6": ("attack=copycat", "attack.victims=6"),
    "insider": ("attack=insider",),
}
MAIN = ("inverse", "label-flip", "random", "omniscient")
KNOWN = [*RULES, "oracle cut"]


@dataclass(frozen=True)
class Idle(Random):
    """Votes at random, from clients that do not train: they would send the same if they did."""

    trains: ClassVar[bool] = False


@dataclass(frozen=True)
class Shared:
    """What runs have in common that differ in their attack alone."""

    turns: Turns = field(default_factory=dict)
    networks: dict[bool, Network] = field(default_factory=dict)  # by whether attackers train: fewer take fewer kernels


def measure(rule: str, settings: list[str], preset: str, data: Dataset, shared: Shared) -> dict[str, Any]:
    """Accuracy after every round, and what the rule made of hostile and honest clients."""
    made = simulation(read(preset, settings), data=data)
    if isinstance(made.method, FedVote):
        idle = Idle() if type(made.attack) is Random else made.attack
        made = replace(made, method=Remembered.like(made.method, shared.turns), attack=idle)
        if rule == "oracle cut":
            made = replace(made, method=replace(made.method, reputation=OracleCut(hostile=made.hostile)))
    hostile = set(made.hostile)
    found: dict[str, Any] = {"settings": settings, "accuracy": [], "hostile_share": [], "honest_kept": []}
    network = shared.networks.setdefault(made.attack.trains, made.placed())
    for snapshot in made.run(network=network):
        accuracy = snapshot.record.get("accuracy")  # which is not measured in every round
        found["accuracy"].append(None if accuracy is None else round(accuracy, 4))
        weights = snapshot.record.get("vote_weight", {})
        found["hostile_share"].append(round(sum(w for c, w in weights.items() if int(c) in hostile), 4))
        found["honest_kept"].append(sum(w > 0 for c, w in weights.items() if int(c) not in hostile))
    return found


def planned(options: argparse.Namespace) -> list[tuple[str, str, int, int]]:
    """(rule, attack, hostile, seed) of every run that is asked for. An oracle's result is the same for all attacks."""
    runs = itertools.product(options.hostile, options.seeds, options.rules, options.attacks)
    wanted = [(rule, "none" if rule == "oracle" or h == 0 else attack, h, seed) for h, seed, rule, attack in runs]
    return list(dict.fromkeys(wanted))


def table(runs: dict[str, Any]) -> str:
    """Mean accuracy over seeds after the last round, in percent; a row for every attack and number of attackers."""
    entries = [(*key.split("/"), run["accuracy"][-1]) for key, run in runs.items()]
    rules = sorted({entry[0] for entry in entries}, key=lambda rule: (KNOWN.index(rule.partition("@")[0]), rule))
    lines = [f"{'hostile':>7}  {'attack':14}" + "".join(f"{rule:>24}" for rule in rules)]
    for hostile, attack in itertools.product(sorted({int(e[2]) for e in entries}, reverse=True), ATTACKS):
        cells = []
        for rule in rules:
            asked = "none" if rule == "oracle" else attack
            values = [e[4] for e in entries if e[:3] == (rule, asked, str(hostile))]
            cells.append(f"{100 * sum(values) / len(values):>21.1f}({len(values)})" if values else " " * 24)
        if any(e[1] == attack and e[2] == str(hostile) and e[0] != "oracle" for e in entries):
            lines.append(f"{hostile:>7}  {attack:14}" + "".join(cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", default=[], metavar="RULE", help=", ".join(KNOWN))
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=list(MAIN))
    parser.add_argument("--hostile", nargs="+", type=int, default=[15])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--preset", default="cifar10-silo")
    parser.add_argument("--set", nargs="*", default=["method.coding=plain"], help="settings of all FedVote runs")
    parser.add_argument("--engine", nargs="*", default=[], help="settings of all runs")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true", help="show what is there, and run nothing")
    parser.add_argument("--out", type=Path, default=Path("results/byzantine.json"))
    options = parser.parse_args()
    for name, at, _ in (rule.partition("@") for rule in options.rules):
        if name not in KNOWN:
            parser.error(f"there is no rule {name!r}; known: {', '.join(KNOWN)}")
        if at and not any("{rate}" in setting for setting in RULES.get(name, ())):
            parser.error(f"{name} has no learning rate here; --set method.lr=RATE sets that of all FedVote runs")
    done = json.loads(options.out.read_text()) if options.out.exists() else {"preset": options.preset, "runs": {}}
    if not options.table:
        preset = read(options.preset, [])
        began, data, clients = time.monotonic(), load(preset.data.name), preset.federation.clients
        done["environment"] = environment(find_device("auto"))
        shared, theirs = Shared(), None
        for rule, attack, hostile, seed in planned(options):
            name = f"{rule}/{attack}/{hostile}/{seed}"
            if name in done["runs"] or time.monotonic() - began > options.seconds:
                continue
            # others have little in common with these
            alike = (hostile, seed, "camps" if rule == "oracle" or not hostile else rule)
            if theirs != alike:
                shared, theirs = Shared(), alike
            common = [f"rounds={options.rounds}", f"seed={seed}", f"federation.hostile={hostile}", *options.engine]
            ruled = settings_of(rule.removeprefix("oracle "), hostile, clients)
            voted = [] if any(setting.startswith("method=") for setting in ruled) else options.set
            twin = f"{rule.replace('trimmed mean', 'median')}/{attack}/{hostile}/{seed}"
            if rule.startswith("trimmed mean") and 2 * hostile + 1 == clients and twin in done["runs"]:
                run = {**done["runs"][twin], "same_as": twin}  # of which one client is left, the middle
            else:
                run = measure(rule, [*common, *voted, *ruled, *ATTACKS[attack]], options.preset, data, shared)
            done["runs"][name] = run
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(done) + "\n")
            kept = f"hostile share {run['hostile_share'][-1]}, honest kept {run['honest_kept'][-1]}"
            print(f"{name}: {run['accuracy'][-1]:.4f}, {kept}, {time.monotonic() - began:.0f} s", flush=True)
    print(table(done["runs"]))


if __name__ == "__main__":
    main()
