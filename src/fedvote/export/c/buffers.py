"""Memory plan of a program: all values share one array, and a place is reused after the last use of its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

IN_PLACE = ("fv_each", "fv_relu", "fv_clip")  # may write their output over their input


@dataclass(frozen=True)
class Step:
    """A call that computes a value. In `call`, {y} is the place of the value and {0}, {1}, ... those of its sources."""

    call: str
    sources: tuple[str, ...]
    value: str

    def text(self, places: Mapping[str, str]) -> str:
        return self.call.format(*(places[source] for source in self.sources), y=places[self.value])


def allocate(steps: Sequence[Step], sizes: Mapping[str, int], fixed: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """The length of the array and the place of every value. `fixed`: places of values outside the array."""
    last = {source: index for index, step in enumerate(steps) for source in step.sources}
    live: dict[str, tuple[int, int]] = {}  # start and end of values that are still needed
    size, places = 0, dict(fixed)
    for index, step in enumerate(steps):
        if step.value in fixed:
            continue
        source = step.sources[0]
        if step.call.startswith(IN_PLACE) and source in live and last[source] == index:
            start = live[source][0]
        else:
            start = first_fit(sorted(live.values()), sizes[step.value])
        live[step.value] = start, start + sizes[step.value]
        size, places[step.value] = max(size, live[step.value][1]), f"memory + {start}"
        live = {value: place for value, place in live.items() if last.get(value, -1) > index}
    return size, places


def first_fit(taken: Sequence[tuple[int, int]], count: int) -> int:
    """The start of the first gap of at least `count` numbers. `taken` is sorted."""
    start = 0
    for begin, end in taken:
        if begin - start >= count:
            return start
        start = max(start, end)
    return start
