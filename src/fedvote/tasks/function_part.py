"""A plain function as a part: `loss=my_loss` in a program, `loss = "mine.py:my_loss"` in a configuration."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

Part = TypeVar("Part")


@cache
def class_of(base: type[Part], function: Callable[..., Any]) -> type[Part]:
    """A subclass of `base` that calls the function. Attributes of the function replace class variables of `base`."""

    def call(self: Part, *arguments: Any) -> Any:
        return function(*arguments)

    own = {name: getattr(function, name) for name in ("higher_is_better", "registered_as") if hasattr(function, name)}
    body = {**own, "__call__": call, "__doc__": function.__doc__, "__module__": function.__module__}
    name = getattr(function, "__name__", type(function).__name__)
    made: Any = ABCMeta(re.sub(r"\W+", "_", name).strip("_"), (base,), body)
    whole: type[Part] = dataclass(frozen=True)(made)
    return whole
