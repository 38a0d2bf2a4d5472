"""A client's answer to an evaluation: batch-norm statistics of its training examples, or counts of held-out ones."""

from __future__ import annotations

from functools import partial

import torch
from flwr.app import Context

from fedvote.core import State
from fedvote.engines.flower.client import site
from fedvote.engines.flower.pooled_evaluation import (
    EXAMPLES,
    LOSS,
    RIGHT,
    RIGHT_CALIBRATED,
    STATE,
    STATISTICS,
    part,
    read,
    write,
)
from fedvote.engines.flower.tasks import Task
from fedvote.federation import Federation
from fedvote.network.round_metrics import score
from fedvote.system.device import repeatable

LARGEST = 2**33  # bytes of a request


def evaluate(task: Task, context: Context) -> bytes:
    """The answer to a request. A client without held-out examples answers that it has none."""
    node = context.node_config
    federation, _ = site(task.problem, task.client, str(node.get("data", "")), str(node.get("device", "auto")))
    request = read(task.broadcast, LARGEST)
    state = {name: value.to(federation.device) for name, value in part(request, STATE).items()}
    with repeatable():
        if federation.network.norms and not part(request, STATISTICS):
            return write(statistics(federation, state))
        return write(counts(federation, state, part(request, STATISTICS)))


def statistics(federation: Federation, state: State) -> State:
    """The statistics of each model's batch norms, and the number of examples that they are of."""
    x = federation.calibration()
    answer = {EXAMPLES: torch.tensor(len(x))}
    for model, weights in federation.method.models(state).items():
        measured = federation.network.to(federation.device).calibrate(weights, x)
        answer |= {f"{model}/{name}": value for name, value in measured.items()}
    return answer


def counts(federation: Federation, state: State, statistics: State) -> State:
    """How many held-out examples each model classifies correctly, and the sum of its losses."""
    test, network = federation.data.test.to(federation.device), federation.network.to(federation.device)
    answer = {EXAMPLES: torch.tensor(len(test))}
    for model, weights in federation.method.models(state).items():
        fixed = {name: value.to(federation.device) for name, value in part(statistics, f"{model}/").items()}
        right, loss, calibrated = 0.0, 0.0, 0.0
        if n := len(test):
            batch, goal = federation.plan.engine.test_batch, federation.goal
            settled = partial(network.calibrated, weights, fixed)
            calibrated, loss = (n * mean for mean in score(settled, test, batch, goal))
            right = calibrated
            if n > 1:  # one example has no batch statistics
                plain = partial(network, weights.voted, weights.floats)
                right, loss = (n * mean for mean in score(plain, test, batch, goal))
        answer |= {
            f"{model}/{RIGHT}": torch.tensor(round(right)),
            f"{model}/{RIGHT_CALIBRATED}": torch.tensor(round(calibrated)),
            f"{model}/{LOSS}": torch.tensor(loss, dtype=torch.float64),
        }
    return answer
