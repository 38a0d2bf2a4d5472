"""What an aggregation rule is: a vector from each of K clients -> one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.core import Message, State
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Aggregate(ABC):
    """Hyperparameters as fields, one pure function. Rows are finite; weights are the clients' shares and sum to 1."""

    counts_heads: ClassVar[bool] = False  # whether every client counts once, whatever its share

    @abstractmethod
    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor: ...

    def check(self, K: int) -> None:
        """Refuse a number of rows that is too small for this rule."""
        return  # one will do for most

    def merge(self, start: State, ups: Message, weights_K: Tensor) -> State:
        """The rule on whole models: one row a client, of what it changed, so that lengths and distances mean something.

        To most rules the start is the same to rounding error, F(x + c) = F(x) + c; centred clipping needs it.
        """
        # theta + F(theta_1 - theta, ..., theta_K - theta)
        change_KD = torch.cat([ups[name] - start[name] for name in start], dim=1)
        parts = self(change_KD, weights_K).split([len(value) for value in start.values()])
        return {name: start[name] + part for name, part in zip(start, parts, strict=True)}


@dataclass(frozen=True)
class Coordinatewise(Aggregate):
    """A rule that sees one coordinate at a time, wherever it lies: it needs neither one long row nor the start."""

    def merge(self, start: State, ups: Message, weights_K: Tensor) -> State:
        return {name: self(ups[name], weights_K) for name in start}


def refuse_unequal(rule: Aggregate, weights_K: Tensor) -> None:
    """For rules that count heads: ignoring weights would hide a setting."""
    least, most = weights_K.aminmax()
    if least != most:
        raise ConfigError(
            f"{type(rule).__name__} counts every client once, but got weights from {least:.4g} to {most:.4g}"
        )
