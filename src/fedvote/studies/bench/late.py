"""What late ballots are worth: some clients are always a round late, and a server waits, drops or counts them.

The clients that are late have data of their own kind (a Dirichlet partition), so a server that drops their ballots
never learns it. Rounds are those of `rounds.py`, as in both engines; numbers are means of the last three rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from fedvote.core import State
from fedvote.federation import Federation
from fedvote.rounds import BallotBox, Round
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.config import read
from fedvote.runs.experiment import federation
from fedvote.runs.toml_tables import in_order
from fedvote.studies.rows import Rows, chosen
from fedvote.system.device import repeatable
from fedvote.wire import stacked, weigh

SETTINGS = ("federation.clients=15", "partition.alpha=0.1", "local.batch=8", "engine.stack=1")
LATE = 5  # of the clients, in every round
SEEDS, LAST = (0, 1, 2), 3
WEIGHTS = {"waits": None, "drops": 0.0, "counts 0.25": 0.25, "counts 0.5": 0.5, "counts 1": 1.0}
"""What a server does with late ballots -> their weight; None: they are not late, because the server waits."""


def bench(preset: str = "quickstart", set: Sequence[str] = (), rounds: int = 12, only: Sequence[str] = ()) -> Rows:
    """A row for each way to treat late ballots."""
    rows = []
    for how in chosen(only, WEIGHTS, "late"):
        found = []
        for seed in SEEDS:
            config = read(preset, in_order([*SETTINGS, *set, f"rounds={rounds}", f"seed={seed}"]))
            accuracies = run(federation(config, "cpu"), WEIGHTS[how])
            found.append(statistics.fmean(accuracies[-LAST:]))
        rows.append({"server": how, "rounds": rounds, "accuracy": statistics.fmean(found), "seeds": found})
    return rows


def run(site: Federation, weight: float | None) -> list[float]:
    """The deployed network's accuracy after each round."""
    network, test, calibration = site.placed(), site.test(), site.calibration()
    state, waiting, accuracies = site.start().state, list[tuple[Any, ...]](), []
    for number in range(1, site.plan.rounds + 1):
        with repeatable():
            round, cohort = Round(site.method, network, site.key(number)), site.cohort(number)
            on_time = cohort if weight is None else cohort[LATE:]
            box = BallotBox(round, state, len(on_time))
            box.put(_ballots(site, round, state, on_time), on_time)
            for ballots in waiting:
                box.put_late(*ballots)
            late = [client for client in cohort if client not in on_time] if weight else []
            waiting = [(_ballots(site, round, state, late), late, weight, round, state)] if late else []
            state = box.close().state
            accuracies.append(site.quality(Snapshot(number, state, {}), network, test, calibration)["accuracy"])
    return accuracies


def _ballots(site: Federation, round: Round, state: State, clients: Sequence[int]) -> Any:
    keys = [site.key(round.key.round, client) for client in clients]
    outgoing, _ = round.train(site.method.broadcast(state), site.batches(site.training, keys), {}, keys)
    return stacked(weigh(outgoing))
