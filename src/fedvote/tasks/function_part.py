"""A plain function as a part: `loss=my_loss` in a program, `loss = "mine.py:my_loss"` in a configuration.

With one target, the function gets outputs (n,) and targets (n,): both have one shape, however targets were given.
"""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from torch import Tensor, nn

from fedvote.errors import ConfigError, some

Part = TypeVar("Part")


@cache
def class_of(base: type[Part], function: Callable[..., Any]) -> type[Part]:
    """A subclass of `base` that calls the function. Attributes of the function replace class variables of `base`."""
    weights = function.named_parameters() if isinstance(function, nn.Module) else ()
    if own := [name for name, weight in weights if weight.requires_grad]:
        raise ConfigError(
            f"{type(function).__name__} has weights of its own ({some(own)}), which no round would train: put them "
            "into the network, or call requires_grad_(False) on it"
        )

    def call(self: Part, outputs_NC: Tensor, targets_N: Tensor) -> Any:
        return function(*as_given(outputs_NC, targets_N))

    attributes = {
        name: getattr(function, name) for name in ("higher_is_better", "registered_as") if hasattr(function, name)
    }
    body = {**attributes, "__call__": call, "__doc__": function.__doc__, "__module__": function.__module__}
    name = getattr(function, "__name__", type(function).__name__)
    made: Any = ABCMeta(re.sub(r"\W+", "_", name).strip("_"), (base,), body)
    whole: type[Part] = dataclass(frozen=True)(made)
    return whole


def as_given(outputs_NC: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """The arguments of the user's function: a single column loses its axis, in both."""
    one = targets_N.ndim == 2 and targets_N.shape[1] == 1
    return (outputs_NC.squeeze(1), targets_N.squeeze(1)) if one else (outputs_NC, targets_N)
