"""Fast paths: do they change accuracy? Clients one by one in float32, the default, and compiled.

Tests show that equal arithmetic gives equal bits. bfloat16 and other orders of sums give other bits, but should give
the same accuracy. Accuracy is the mean over the second half of the rounds: it varies more from round to round than
between paths.
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
    "Accuracy of the same runs computed in faster ways",
    tuple(
        Cell(job, preset, (*settings, *fast), way)
        for job, (preset, settings) in JOBS.items()
        for way, fast in WAYS.items()
    ),
    grid({"accuracy": ""}, "Job", "Mean accuracy over the second half of the rounds", Runs.second_half),
)
