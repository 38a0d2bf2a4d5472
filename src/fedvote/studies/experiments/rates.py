"""The search for learning rates on CIFAR-10: the paper's eight for every method, judged by held-out examples.

A rate is chosen if it is the best of those tried and not at the edge of them: the next smaller and the next larger one
are worse. Nobody needs to try all eight for that: `--only FedAvg --only 0.0003 --only 0.001 --only 0.003`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedvote.runs.sweep import GRIDS
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.compared_methods import CONTENDERS
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import grid

GRID = tuple(f"{float(rate):g}" for rate in GRIDS["paper-grid"])
SEARCH = ("data.validation=0.1", "rounds=10", "engine.evaluate_every=10")
WITH_SIGNS = ("signSGD", "SIGNUM")  # their contenders' rate is the server's; clients have one as well


def searched() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Name, settings, and the key of the rate: of every method, of FedVote on iid data, and of clients of signSGD."""
    for name, (*method, rate) in CONTENDERS.items():
        key = rate.partition("=")[0]
        yield name, tuple(method), key
        if name.startswith("FedVote"):
            yield f"{name}, iid", (*method, "partition=iid"), key
        if name in WITH_SIGNS:
            yield f"{name}, local", (*method, rate), "method.lr"


def best(cells: list[Mapping[str, Any]]) -> dict[str, str]:
    """Row of a result file -> its best rate, by the accuracy of the last round; without rows that have no bracket."""
    found: dict[str, dict[str, float]] = {}
    for cell in cells:
        (records,) = cell["seeds"].values()
        found.setdefault(cell["row"], {})[cell["column"]] = records[-1]["accuracy"]
    chosen = {row: max(by_rate, key=by_rate.__getitem__) for row, by_rate in found.items()}
    return {row: rate for row, rate in chosen.items() if _neighbours(rate) <= found[row].keys()}


def _neighbours(rate: str) -> set[str]:
    place = GRID.index(rate)
    return set(GRID[max(0, place - 1) : place + 2])


RATES_CIFAR10 = Comparison(
    "Learning rates of every method: accuracy on held-out training examples, CIFAR-10 among 31 clients, 10 rounds",
    tuple(
        Cell(name, "cifar10-silo", (*settings, f"{key}={rate}", *SEARCH), rate)
        for name, settings, key in searched()
        for rate in GRID
    ),
    grid({"accuracy": ""}, "Method"),
    "A tenth of the training examples is held out and judges the deployed model. 'local' is the learning rate of "
    "signSGD's and SIGNUM's clients; the other rate of these two is the server's.",
)
