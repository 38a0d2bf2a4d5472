"""The contract of an aggregation rule: K vectors, one per client -> one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import Message, State
from fedvote.errors import ConfigError
from fedvote.settings import Settings


@dataclass(frozen=True)
class Aggregate(Settings, ABC):
    """One pure function, with hyperparameters as fields. Rows are finite; weights are clients' shares and sum to 1."""

    counts_heads: ClassVar[bool] = False  # whether every client counts once, despite its share

    @abstractmethod
    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        """One row (D,) for the rows of K clients."""

    def check(self, K: int) -> None:
        """Raise ConfigError if K rows are too few for this rule. One is enough for most rules."""
        return

    def merge(self, start: State, ups: Message, weights_K: Tensor) -> State:
        """Merge whole models: the rule sees one row per client, its change since the start.

        Most rules do not depend on the start, F(x + c) = F(x) + c, up to rounding errors. Centred clipping does.
        """
        # theta + F(theta_1 - theta, ..., theta_K - theta)
        change_KD = torch.cat([ups[name] - start[name] for name in start], dim=1)
        merged_D = contracts.vector(self, self(change_KD, weights_K), change_KD.shape[1])
        parts = merged_D.split([len(value) for value in start.values()])
        return {name: start[name] + part for name, part in zip(start, parts, strict=True)}


@dataclass(frozen=True)
class Coordinatewise(Aggregate):
    """A rule that treats each coordinate alone, so it needs neither one long row nor the start."""

    def merge(self, start: State, ups: Message, weights_K: Tensor) -> State:
        return {name: contracts.vector(self, self(ups[name], weights_K), len(start[name])) for name in start}


def refuse_unequal(rule: Aggregate, weights_K: Tensor) -> None:
    """Raise ConfigError if weights differ but the rule counts heads: it would silently ignore a setting."""
    least, most = weights_K.aminmax()
    if least != most:
        raise ConfigError(
            f"{type(rule).__name__} counts every client once, but got weights from {least:.4g} to {most:.4g}: give all "
            "clients the same weight"
        )
