"""Losses by name: what local training minimises. A new one is a class and a line in `LOSSES`, or a plain function."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from fedvote.core import TASKS, Task
from fedvote.errors import ConfigError
from fedvote.settings import Settings
from fedvote.tasks.function_part import class_of


def _check_number(name: str, value: float, fits: bool, expected: str) -> None:
    if not fits or not math.isfinite(value):
        raise ConfigError(f"{name} is {value!r}, expected a finite number {expected}")


@dataclass(frozen=True)
class Loss(Settings, ABC):
    """A function of outputs (B, C) and targets, (B,) classes or (B, C) numbers: the mean over the batch."""

    tasks: ClassVar[tuple[Task, ...]] = TASKS  # the tasks that it is for

    @abstractmethod
    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor: ...

    def total(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        """The sum over the batch."""
        return self(outputs_BC, targets_B) * len(targets_B)

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> type[Loss]:
        return class_of(cls, function)


@dataclass(frozen=True)
class AutoLoss(Loss):
    """By the data's task: cross-entropy for classes, mse for regression, bce for multi-label."""

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        raise ConfigError("the loss is auto, and there are no data to choose it by: name one")


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Minus the log of the probability of the right class."""

    tasks = ("classification",)

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.cross_entropy(outputs_BC, targets_B)

    def total(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.cross_entropy(outputs_BC, targets_B, reduction="sum")


@dataclass(frozen=True)
class MSE(Loss):
    """Mean squared error."""

    tasks = ("regression",)

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.mse_loss(outputs_BC, targets_B)


@dataclass(frozen=True)
class MeanAbsolute(Loss):
    """Mean absolute error."""

    tasks = ("regression",)

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.l1_loss(outputs_BC, targets_B)


@dataclass(frozen=True)
class Huber(Loss):
    """Squared error where it is small, absolute error where it is large."""

    tasks = ("regression",)
    delta: float = 1.0  # the error from which on it is absolute

    def __post_init__(self) -> None:
        _check_number("delta", self.delta, self.delta > 0, "above 0")

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.huber_loss(outputs_BC, targets_B, delta=self.delta)


@dataclass(frozen=True)
class BCE(Loss):
    """Binary cross-entropy of each label; outputs are logits."""

    tasks = ("multi-label",)

    def __call__(self, outputs_BC: Tensor, targets_B: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs_BC, targets_B)


LOSSES: dict[str, type[Loss]] = {
    "auto": AutoLoss,
    "cross-entropy": CrossEntropy,
    "mse": MSE,
    "mae": MeanAbsolute,
    "huber": Huber,
    "bce": BCE,
}

USUAL: dict[Task, Loss] = {"classification": CrossEntropy(), "regression": MSE(), "multi-label": BCE()}
"""The loss that `auto` stands for."""


def smoothed(loss: Loss, share: float) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss to train with: a share of each label is spread evenly over all classes. Evaluation does without."""
    if not share:
        return loss
    if not isinstance(loss, CrossEntropy):
        raise ConfigError(
            f"label_smoothing is {share}, but the loss is {type(loss).__name__}: only cross-entropy has labels to "
            "smooth; leave it at 0"
        )
    return partial(F.cross_entropy, label_smoothing=share)
