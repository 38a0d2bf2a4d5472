"""The optimiser of local training. Every client starts a new one in every round."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fedvote.errors import ConfigError

if TYPE_CHECKING:
    from fedvote.method import Method

# torch's optimisers that treat each element alone: clients that share a tensor must not mix
ELEMENTWISE = (
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD",
)  # fmt: skip
FUSED = ("Adagrad", "Adam", "AdamW", "SGD")  # one pass over the parameters instead of many


@dataclass(frozen=True)
class LocalOptimizer:
    name: str
    lr: float
    options: Mapping[str, Any]

    @property
    def plain_rate(self) -> float | None:
        """The learning rate of plain SGD; None for any other optimiser."""
        return self.lr if self.name == "SGD" and not self.options else None

    def make(self, parameters: Sequence[Tensor] | Sequence[Mapping[str, Any]]) -> torch.optim.Optimizer:
        if self.name not in ELEMENTWISE:
            raise ConfigError(
                f"optimizer {self.name!r} is not one of the element-wise optimisers of torch.optim; "
                f"choose one of {', '.join(ELEMENTWISE)}"
            )
        kind, known = getattr(torch.optim, self.name), _options_of(self.name)
        if unknown := self.options.keys() - known:
            raise ConfigError(
                f"{self.name} has no option {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
            )
        options = {"lr": self.lr, **({"fused": True} if self.name in FUSED else {}), **self.options}
        try:
            optimizer: torch.optim.Optimizer = kind(parameters, **options)
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            raise ConfigError(f"{self.name} refuses its options {options}: {error}") from error
        return optimizer


def optimizer_of(method: Method, factor: float = 1.0) -> LocalOptimizer:
    """The method's optimiser; `factor`: of its learning rate, from a schedule."""
    return LocalOptimizer(method.optimizer, method.lr * factor, method.optimizer_options)


@functools.cache
def _options_of(optimizer: str) -> frozenset[str]:
    return frozenset(inspect.signature(getattr(torch.optim, optimizer)).parameters.keys() - {"params", "lr"})
