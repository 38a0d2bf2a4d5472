"""Whether fast ways of computing a run change its accuracy: clients one by one in float32, as it comes, and compiled.

Where the arithmetic is the same the bits are, as tests show. bfloat16, and sums in another order, make other bits, and
should make no other accuracy. That is the mean over the second half of the rounds: from one round to the next it moves
by more than there is to be seen.
"""

from __future__ import annotations

from fedvote.studies.experiments.cells import Cell, Runs
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import grid

FEDAVG = ("federation.clients=50", "model=small-cnn", "method=fedavg", "method.lr=0.02", "method.optimizer=SGD",
          "local.batch=10", "rounds=16")  # fmt: skip
JOBS = {
    "FedVote, LeNet-5, Fashion-MNIST": ("fashion-mnist", ("method.coding=plain", "rounds=12")),
    "FedAvg, small CNN, CIFAR-10": ("cifar10-silo", FEDAVG),
}
WAYS = {
    "one by one, float32": ("engine.stack=1", "engine.precision=float32"),
    "as it comes": (),
    "compiled": ("engine.compile=true",),
}
FAST_PATHS = Comparison(
    "Accuracy of fast ways to compute the same runs",
    tuple(
        Cell(job, preset, (*settings, *fast), way)
        for job, (preset, settings) in JOBS.items()
        for way, fast in WAYS.items()
    ),
    grid({"accuracy": ""}, "Job", "Mean accuracy over the second half of the rounds", Runs.second_half),
)
