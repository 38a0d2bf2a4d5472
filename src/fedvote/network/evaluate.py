"""`evaluate`: how good a network is on a dataset, in one number and class by class."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.core import Dataset, Examples
from fedvote.data import load
from fedvote.errors import ConfigError, Doubt, FedVoteError, ModelError, reason, some
from fedvote.network.deployed import Deployed
from fedvote.network.round_metrics import batches_of, outputs_of
from fedvote.plan import Plan
from fedvote.tasks.goal import Goal
from fedvote.tasks.metrics import decisions


def evaluate(
    network: nn.Module, data: Dataset | str, *, loss: Any = "auto", metric: Any = "auto", batch: int = 1000
) -> dict[str, Any]:
    """Judge a network on the test examples: the metric by its name, the loss, and more by the task.

    network: what `deployed` or `load_network` returns; or any nn.Module, which gets scaled inputs, as in training
    data: a dataset, or its name
    loss, metric: names or functions, as in `simulate`; not given: the usual ones of the data's task (cross-entropy and
    accuracy, mse and r2, or bce and f1), whatever the network was trained with

    Classification: `confusion` has a row for each true class, a column for each answer; `by_class` has the share of
    right answers. Multi-label: `by_class` has each label's F1. A class without examples has None.
    """
    data = load(data) if isinstance(data, str) else data
    for part, kind in ((network, nn.Module), (data, Dataset)):
        if not isinstance(part, kind):
            raise ConfigError(f"got {contracts.kind(part)}, expected a {kind.__name__}")
    size: Any = batch
    if not isinstance(size, Integral) or size < 1:
        raise ConfigError(f"batch is {batch!r}, expected a whole number above 0")
    plan = Plan(loss=loss, metric=metric)
    found = judged(network, data, data.test, Goal.of(plan.loss, plan.metric, data), batch)
    if isinstance(network, Deployed) and network.classes != data.classes:
        warnings.warn(
            f"the network's classes are {some(network.classes)}, and those of {data.name} are {some(data.classes)}: "
            "they are compared in this order; if it is wrong, name the network's by `classes` when you make the data",
            Doubt,
            stacklevel=2,
        )
    return found


def judged(network: nn.Module, data: Dataset, examples: Examples, goal: Goal, batch: int) -> dict[str, Any]:
    """The result of `evaluate` on some examples of a dataset, which are on the network's device."""
    found_NC = answers(network, examples, batch)
    if found_NC.shape != (len(examples), len(data.classes)):
        raise ModelError(
            f"the network gives outputs of shape {tuple(found_NC.shape[1:])}, expected ({len(data.classes)},), as "
            f"{data.name} has"
        )
    goal.check_loss(found_NC, examples.y)
    loss = float(goal.loss.total(found_NC, examples.y)) / len(examples)
    result = {goal.metric.name: goal.judge(found_NC, examples.y), "loss": loss, "examples": len(examples)}
    return result | by_class(data, found_NC, examples.y)


def answers(network: nn.Module, examples: Examples, batch: int) -> Tensor:
    """All outputs, in evaluation mode. A network that scales its own inputs gets them as they are stored."""
    if getattr(network, "scales_inputs", False):
        batches = (network(examples.x[rows]) for rows in batches_of(examples, batch))
    else:
        batches = (outputs for outputs, _ in outputs_of(network, examples, batch))
    modes = {layer: layer.training for layer in network.modules()}
    network.eval()
    try:
        with torch.no_grad():
            return torch.cat([outputs.float() for outputs in batches])
    except FedVoteError:
        raise
    except Exception as error:  # the user's code may raise anything
        shape = tuple(examples.x.shape[1:])
        raise ModelError(
            f"the network fails on inputs of shape {shape}: {reason(error)}; it takes a batch of them in float32, and "
            "returns one tensor"
        ) from error
    finally:
        for layer, training in modes.items():
            layer.training = training


def by_class(data: Dataset, found_NC: Tensor, y: Tensor) -> dict[str, Any]:
    if data.task == "regression":
        return {}
    found, true = (each.cpu() for each in decisions(found_NC, y))
    if data.task == "multi-label":
        scores = 2 * (found & true).sum(0) / (found.sum(0) + true.sum(0))
        return {"by_class": _named(data.classes, scores)}
    # confusion_ij: examples of class i that are answered with j
    confusion = true.double().T @ found.double()
    shares = confusion.diagonal() / confusion.sum(1)
    return {"confusion": confusion.long().tolist(), "by_class": _named(data.classes, shares)}


def _named(classes: tuple[str, ...], values: Tensor) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in zip(classes, values.tolist(), strict=True)}
