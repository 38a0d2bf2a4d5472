"""Axes: the place of a value between two ends, and the round numbers at the ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TINY = 1e-300  # below it, floats lose their digits: such a value is drawn as zero


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def step_size(span: float, count: int) -> float:
    """The smallest of 1, 2, 5, 10, ... that cuts the span into at most `count` steps."""
    power: float = 10.0 ** math.floor(math.log10(span / count))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor * count >= span * 0.999)


def steps_between(low: float, high: float, step: float) -> tuple[float, ...]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(index * step for index in range(first, last + 1))


def percent_axis(values: Sequence[float]) -> Axis:
    """An axis from the round number below the data to the one above, within 0 and 100."""
    low, high = min(values), max(values)
    if high - low < 2:  # a narrower axis would make noise look like progress
        low, high = (low + high) / 2 - 1, (low + high) / 2 + 1
    step = step_size(high - low, 5)
    low, high = max(0, math.floor(low / step) * step), min(100, math.ceil(high / step) * step)
    return Axis(low, high, steps_between(low, high, step))


def axis_from_zero(high: float, *, whole: bool = False) -> Axis:
    high = high if high > TINY else 1
    step = step_size(high, 6)
    return Axis(0, high, steps_between(0, high, max(1, step) if whole else step))


def value_axis(values: Sequence[float]) -> Axis:
    """An axis from zero, or from below it if values are negative."""
    low, high = min(values), max(values)
    if low >= -TINY:
        return axis_from_zero(high)
    step = step_size(max(high, 0) - low, 5)
    low, high = math.floor(low / step) * step, max(math.ceil(high / step), 0) * step
    return Axis(low, high, steps_between(low, high, step))


def log_axis(low: float, high: float) -> Axis:
    """An axis between two different positive ends, with ticks at 1, 2, 5 of every decade, or at 1 if those are many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 200 else (1,)
    ticks = (factor * 10.0**decade for decade in decades for factor in factors)
    return Axis(low, high, tuple(tick for tick in ticks if low <= tick <= high), log=True)
