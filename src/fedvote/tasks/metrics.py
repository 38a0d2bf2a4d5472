"""Metrics by name: how good outputs are. A new one is a class and a line in `METRICS`, or a plain function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from fedvote.core import TASKS, Task
from fedvote.errors import ConfigError
from fedvote.settings import Settings
from fedvote.tasks.function_part import class_of

Average = Literal["macro", "micro"]


@dataclass(frozen=True)
class Metric(Settings, ABC):
    """A function of all outputs (n, C) and targets, (n,) classes or (n, C) numbers: one number."""

    tasks: ClassVar[tuple[Task, ...]] = TASKS  # the tasks that it is for
    higher_is_better: ClassVar[bool] = True
    percent: ClassVar[bool] = False  # whether it is a share, to be shown in percent

    @property
    def name(self) -> str:
        """Its name in metrics.jsonl."""
        return type(self).__name__.lower()

    @abstractmethod
    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float: ...

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> type[Metric]:
        return class_of(cls, function)


@dataclass(frozen=True)
class AutoMetric(Metric):
    """By the data's task: accuracy for classes, r2 for regression, f1 for multi-label."""

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        raise ConfigError("the metric is auto, and there are no data to choose it by: name one")


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of examples whose class is right."""

    tasks = ("classification",)
    percent = True

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        return float((outputs_NC.argmax(1) == targets_N).sum()) / len(targets_N)


@dataclass(frozen=True)
class F1(Metric):
    """The harmonic mean of precision and recall; of several classes or labels, by `average`."""

    tasks = ("classification", "multi-label")
    average: Average = "macro"  # the mean over classes; or "micro": of all decisions together

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        found_NC, true_NC = decisions(outputs_NC, targets_N)
        right_C, found_C, true_C = (found_NC & true_NC).sum(0), found_NC.sum(0), true_NC.sum(0)
        if self.average == "micro":
            right_C, found_C, true_C = (each.sum()[None] for each in (right_C, found_C, true_C))
        seen = found_C + true_C > 0

        # F1 = 2 TP / (2 TP + FP + FN)
        return float((2 * right_C[seen] / (found_C + true_C)[seen]).mean())


@dataclass(frozen=True)
class Exact(Metric):
    """The share of examples whose labels are all right."""

    tasks = ("multi-label",)
    percent = True

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        return float(((outputs_NC > 0) == (targets_N > 0.5)).all(1).float().mean())


@dataclass(frozen=True)
class R2(Metric):
    """The share of the targets' variance that outputs explain: 1 is perfect, 0 is as good as the mean."""

    tasks = ("regression",)

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        targets_NC = targets_N.double()
        # R2 = 1 - sum (y - f)^2 / sum (y - mean y)^2, the mean over the targets
        errors_C = (targets_NC - outputs_NC).square().sum(0)
        return float((1 - errors_C / (targets_NC - targets_NC.mean(0)).square().sum(0)).mean())


@dataclass(frozen=True)
class RMSE(Metric):
    """The root of the mean squared error."""

    tasks = ("regression",)
    higher_is_better = False

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        return float((targets_N.double() - outputs_NC).square().mean().sqrt())


@dataclass(frozen=True)
class MAE(Metric):
    """The mean absolute error."""

    tasks = ("regression",)
    higher_is_better = False

    def __call__(self, outputs_NC: Tensor, targets_N: Tensor) -> float:
        return float((targets_N.double() - outputs_NC).abs().mean())


METRICS: dict[str, type[Metric]] = {
    "auto": AutoMetric,
    "accuracy": Accuracy,
    "f1": F1,
    "exact": Exact,
    "r2": R2,
    "rmse": RMSE,
    "mae": MAE,
}

USUAL: dict[Task, Metric] = {"classification": Accuracy(), "regression": R2(), "multi-label": F1()}
"""The metric that `auto` stands for."""


def decisions(outputs_NC: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """Which classes or labels outputs name, and which are right: two boolean tensors (n, C)."""
    if targets_N.ndim > 1:
        return outputs_NC > 0, targets_N > 0.5
    classes = torch.arange(outputs_NC.shape[1], device=outputs_NC.device)
    return outputs_NC.argmax(1)[:, None] == classes, targets_N[:, None] == classes
