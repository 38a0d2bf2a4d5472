"""Figure 5 within the paper's budgets: 1.5 and 4.7 GB up, in real bytes, and as the paper counts.

The paper counts whole bits: a bit a weight and round for a vote or a sign, two for FedPAQ, 32 for a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedvote.report.number_text import spread
from fedvote.studies.experiments.cells import Record, Runs
from fedvote.studies.experiments.views import GIGABYTE, View, by_bytes

BUDGETS = (1.5, 4.7)  # gigabytes of all clients
BITS = {  # a weight and round, by line; FetchSGD: five rows of 10^6 floats for 13 million weights
    "FedVote binary": 1.0,
    "FedVote ternary": 2.0,
    "FedAvg": 32.0,
    "FedPAQ, one norm": 2.0,
    "FedPAQ, buckets": 2.0,
    "signSGD": 1.0,
    "SIGNUM": 1.0,
    "FetchSGD": 5e6 * 32 / 12_963_200,
    "EDEN 1 bit": 1.0,
}
ROUNDS = {name: {1.0: 94, 2.0: 47}.get(bits, 40) for name, bits in BITS.items()}
"""Enough for the larger budget, as the paper counts; at least 40."""


def within_budgets(every: Sequence[Runs]) -> View:
    """Accuracy by bytes, with the accuracies that the paper's way of counting allows each method within a budget."""
    view = by_bytes(every)
    head = [*view.head, *(f"With {most:g} GB, paper's count" for most in BUDGETS)]
    rows = [
        [*row, *(within(runs, most) for most in BUDGETS)] if runs.cell.row in BITS else [*row, *("" for _ in BUDGETS)]
        for row, runs in zip(view.rows, every, strict=True)
    ]
    return replace(view, head=head, rows=rows)


def within(runs: Runs, gigabytes: float) -> str:
    """Accuracy after the last round within a budget, in whole bits."""
    first: Record = next(iter(runs.by_seed.values()))[0]
    allowed = rounds_within(gigabytes, BITS[runs.cell.row], first)
    if allowed > runs.rounds:
        return "ended before"
    return f"{spread(runs.last('accuracy', allowed))}, {allowed} rounds" if allowed else "no round yet"


def rounds_within(gigabytes: float, bits: float, record: Record) -> int:
    """Rounds that a budget allows all clients, at so many bits a weight."""
    weights = 8 * record["uplink_bytes"] / record["uplink_bits_per_weight"]  # of all clients
    return int(8 * gigabytes * GIGABYTE / (bits * weights))
