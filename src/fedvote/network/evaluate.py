"""Accuracy and loss of models on test examples, with batch statistics (as in the paper) and with calibrated ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from fedvote.core import Examples, Weights
from fedvote.network.network import Network, channels_last


def score(outputs: Callable[[Tensor], Tensor], examples: Examples, batch: int) -> tuple[float, float]:
    """Accuracy and mean cross-entropy, computed in batches of nearly equal size."""
    right, loss = torch.zeros((), device=examples.y.device), torch.zeros((), device=examples.y.device)
    for index in torch.arange(len(examples), device=examples.y.device).chunk(-(-len(examples) // batch)):
        x, y = examples.take(index)
        logits = outputs(channels_last(x) if x.is_cuda and x.ndim == 4 else x).float()
        right += (logits.argmax(1) == y).sum()
        loss += F.cross_entropy(logits, y, reduction="sum")
    return float(right) / len(examples), float(loss) / len(examples)


def judge(
    network: Network, models: dict[str, Weights], test: Examples, calibration: Tensor, batch: int
) -> dict[str, float]:
    """Metrics of a round, such as `accuracy` of the deployed model and `accuracy_float` of the float model."""
    metrics: dict[str, float] = {}
    measured: dict[int, tuple[float, float, float]] = {}
    for name, weights in models.items():
        if id(weights) not in measured:
            statistics = network.calibrate(weights, calibration)
            plain = score(partial(network, weights.voted, weights.floats), test, batch)
            calibrated = score(partial(network.calibrated, weights, statistics), test, batch)
            measured[id(weights)] = (*plain, calibrated[0])
        suffix = "" if name == "deployed" else f"_{name}"
        accuracy, loss, calibrated_accuracy = measured[id(weights)]
        metrics |= {
            f"accuracy{suffix}": accuracy,
            f"accuracy{suffix}_calibrated": calibrated_accuracy,
            f"loss{suffix}": loss,
        }
    return metrics


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
