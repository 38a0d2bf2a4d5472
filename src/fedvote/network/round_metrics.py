"""Metric and loss of models on test examples, with batch statistics (as in the paper) and with calibrated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedvote.core import Examples, Weights
from fedvote.network.channels_last import channels_last
from fedvote.network.network import Network
from fedvote.tasks.goal import CLASSES, Goal


def batches_of(examples: Examples, batch: int) -> Sequence[Tensor]:
    """Rows, in batches of nearly equal size; for batch norm, a last single input joins another batch."""
    cut = torch.arange(len(examples), device=examples.y.device).chunk(-(-len(examples) // batch))
    return (*cut[:-2], torch.cat(cut[-2:])) if batch > 1 and len(cut) > 1 and len(cut[-1]) == 1 else cut


def outputs_of(outputs: Callable[[Tensor], Tensor], examples: Examples, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs and targets, batch by batch."""
    for index in batches_of(examples, batch):
        x, y = examples.take(index)
        yield outputs(channels_last(x) if x.is_cuda and x.ndim == 4 else x).float(), y


def score(
    outputs: Callable[[Tensor], Tensor], examples: Examples, batch: int, goal: Goal = CLASSES
) -> tuple[float, float]:
    """The metric and the mean loss, computed in batches."""
    loss, found = torch.zeros((), device=examples.y.device), []
    for outputs_BC, y in outputs_of(outputs, examples, batch):
        loss += goal.loss.total(outputs_BC, y)
        found.append(outputs_BC)
    return goal.judge(torch.cat(found), examples.y), float(loss) / len(examples)


def judge(
    network: Network,
    models: dict[str, Weights],
    test: Examples,
    calibration: Tensor,
    batch: int,
    goal: Goal = CLASSES,
) -> dict[str, Any]:
    """Metrics of a round, such as `accuracy` of the deployed network and `accuracy_float` of the float network."""
    metrics: dict[str, Any] = {}
    measured: dict[int, tuple[float, float, float]] = {}
    for name, weights in models.items():
        if id(weights) not in measured:
            statistics = network.calibrate(weights, calibration)
            calibrated = score(partial(network.calibrated, weights, statistics), test, batch, goal)
            plain = calibrated
            if len(test) > 1:  # one example has no batch statistics
                plain = score(partial(network, weights.voted, weights.floats), test, batch, goal)
            measured[id(weights)] = (*plain, calibrated[0])
        suffix = "" if name == "deployed" else f"_{name}"
        quality, loss, calibrated_quality = measured[id(weights)]
        metrics |= {
            f"{goal.metric.name}{suffix}": quality,
            f"{goal.metric.name}{suffix}_calibrated": calibrated_quality,
            f"loss{suffix}": loss,
        }
    return metrics | goal.record


def success(
    network: Network, models: dict[str, Weights], triggered: Examples, calibration: Tensor, batch: int
) -> dict[str, float]:
    """The share of triggered inputs that get the attackers' label: `backdoor_success`, and `backdoor_success_float`.

    Batch norm is calibrated, as on a device: the statistics of a batch of triggered inputs would hide the trigger.
    """
    shares: dict[str, float] = {}
    for name, weights in models.items() if len(triggered) else ():
        calibrated = partial(network.calibrated, weights, network.calibrate(weights, calibration))
        suffix = "" if name == "deployed" else f"_{name}"
        shares[f"backdoor_success{suffix}"], _ = score(calibrated, triggered, batch)
    return shares
