"""The goal of a run: its loss and its metric, tried on the data's targets before any training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import Dataset
from fedvote.errors import ConfigError, Doubt, reason
from fedvote.tasks import losses, metrics
from fedvote.tasks.function_part import as_given
from fedvote.tasks.losses import AutoLoss, CrossEntropy, Loss
from fedvote.tasks.metrics import Accuracy, AutoMetric, Metric

FEW = 8  # inputs to try loss and metric on
TAKEN = (
    *("round", "loss", "clients", "measured", "metric", "refused", "seconds", "counted", "vote_weight", "left_out"),
    *("backdoor_success", "uplink_bytes", "downlink_bytes", "total_bytes", "judges", "judged_on"),
)
"""Other fields of a round's record."""


@dataclass(frozen=True)
class Goal:
    """What training minimises, and what judges the result."""

    loss: Loss
    metric: Metric

    @classmethod
    def of(cls, loss: Loss, metric: Metric, data: Dataset) -> Goal:
        """The goal for a dataset; ConfigError if loss or metric do not fit its task. `try_on` tries both."""
        loss = losses.USUAL[data.task] if isinstance(loss, AutoLoss) else loss
        metric = metrics.USUAL[data.task] if isinstance(metric, AutoMetric) else metric
        _suits("loss", loss, losses.LOSSES, data)
        _suits("metric", metric, metrics.METRICS, data)
        if metric.name in TAKEN:
            raise ConfigError(f"the metric is called {metric.name}, as is another field of metrics.jsonl: rename it")
        return cls(loss, metric)

    def try_on(self, outputs: Callable[[Tensor], Tensor], data: Dataset, batch: int) -> None:
        """Try loss and metric on a network's outputs for a few inputs: other numbers may be outside a loss's domain."""
        examples = data.train if len(data.train) else data.test
        if not len(examples):
            return  # a server that leaves all data to its clients has none
        rows = torch.arange(FEW) % len(examples)  # batch norm needs several
        few = outputs(examples.take(rows)[0]).detach().float().cpu()
        if isinstance(self.loss, CrossEntropy) and _are_probabilities(few):
            warnings.warn(
                "the network's outputs are probabilities, but cross-entropy expects the numbers before the softmax: "
                "leave out the network's last softmax",
                Doubt,
                stacklevel=4,
            )
        if len(data.train):
            y = data.train.y[:batch].cpu()
            self.check_loss(_repeated(few, len(y)), y)
        if len(data.test) > 1:  # a client's machine has no test examples
            self.judge(_repeated(few, len(data.test)), data.test.y.cpu())

    def check_loss(self, outputs_BC: Tensor, targets_B: Tensor) -> None:
        """Try the loss on these outputs; ConfigError if it is no number to minimise."""
        what, outputs, y = f"the loss {type(self.loss).__name__}", outputs_BC, targets_B
        leaf = outputs.clone().requires_grad_()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            try:
                torch.manual_seed(1)
                value: Any = self.loss(leaf.clone(), y)
                torch.manual_seed(2)
                again: Any = self.loss(leaf.clone(), y)
            except Exception as error:
                outputs, y = as_given(outputs, y)
                raise ConfigError(
                    f"{what} fails on outputs of shape {tuple(outputs.shape)} and targets of {contracts.form(y)} "
                    f"({reason(error)}), expected a function of both that returns one number"
                ) from error
        if not isinstance(value, Tensor):
            found, advice = contracts.kind(value), "return the tensor itself, without .item() or float()"
            advice = "return that number" if value is None else advice
        elif value.ndim:
            found, advice = f"a tensor of shape {tuple(value.shape)}", "add .mean()"
        elif not value.requires_grad:
            found = "a number that does not depend on the outputs"
            advice = "compute it from the outputs by operations that have gradients, without .detach()"
        elif not value.isfinite() and outputs.isfinite().all():
            found, advice = f"{value.item()} though all outputs are finite", "bound its logarithms, roots and quotients"
        elif not torch.equal(value, again) and value.isfinite():
            found, advice = "another number each time", "draw no random numbers in it: no seed determines them"
        else:
            return
        raise ConfigError(f"{what} returns {found}, expected one number as a tensor, the mean over the batch: {advice}")

    def judge(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        """The metric of these outputs; ConfigError if it is no number though all outputs are finite."""
        try:
            value = float(self.metric(outputs_NC, targets_N))
        except Exception as error:  # a user's function may raise anything
            outputs, targets = as_given(outputs_NC, targets_N)
            raise ConfigError(
                f"metric {self.metric.name} fails on outputs of shape {tuple(outputs.shape)} and targets of shape "
                f"{tuple(targets.shape)} ({reason(error)}), expected a function of both that returns one number"
            ) from error
        if not math.isfinite(value) and outputs_NC.isfinite().all():
            raise ConfigError(
                f"metric {self.metric.name} is {value} on {len(targets_N)} test examples though all outputs are "
                "finite, expected a number: choose another metric, or test examples with different targets"
            )
        return value

    @property
    def record(self) -> dict[str, Any]:
        """The metric's name and direction, for the records of a run. Accuracy needs none."""
        if isinstance(self.metric, Accuracy):
            return {}
        own = {"higher_is_better": self.metric.higher_is_better, "percent": self.metric.percent}
        return {"metric": {"name": self.metric.name, **own}}


CLASSES = Goal(CrossEntropy(), Accuracy())


def _suits(what: str, part: Any, registry: Mapping[str, Any], data: Dataset) -> None:
    if data.task not in part.tasks:
        fitting = [name for name, kind in registry.items() if data.task in kind.tasks]
        raise ConfigError(
            f"{what} {type(part).__name__} is for {' and '.join(part.tasks)}, but the task of {data.name} is "
            f"{data.task}; known for it: {', '.join(fitting)}"
        )


def _are_probabilities(outputs_FC: Tensor) -> bool:
    sums_F = outputs_FC.sum(1)
    return outputs_FC.shape[1] > 1 and bool((outputs_FC >= 0).all()) and torch.allclose(sums_F, torch.ones_like(sums_F))


def _repeated(outputs_FC: Tensor, count: int) -> Tensor:
    return outputs_FC[torch.arange(count) % len(outputs_FC)]
