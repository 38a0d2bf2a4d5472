"""Where values lie between the calls of a program: in one array, in which a place is free again after its last use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

IN_PLACE = ("fv_each", "fv_relu", "fv_clip")  # these may write where they read


@dataclass(frozen=True)
class Step:
    """One call, that makes a value of others. In the text, {y} is the value's place and {0}, {1}, ... theirs."""

    call: str
    sources: tuple[str, ...]
    value: str

    def written(self, where: Mapping[str, str]) -> str:
        return self.call.format(*(where[source] for source in self.sources), y=where[self.value])


def places(steps: Sequence[Step], sizes: Mapping[str, int], known: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """How long the array has to be, and where every value is; that of some is `known`."""
    last = {source: index for index, step in enumerate(steps) for source in step.sources}
    held: dict[str, tuple[int, int]] = {}  # from where to where
    size, found = 0, dict(known)
    for index, step in enumerate(steps):
        if step.value in known:
            continue
        source = step.sources[0]
        if step.call.startswith(IN_PLACE) and source in held and last[source] == index:
            start = held[source][0]
        else:
            start = first_fit(sorted(held.values()), sizes[step.value])
        held[step.value] = start, start + sizes[step.value]
        size, found[step.value] = max(size, held[step.value][1]), f"memory + {start}"
        held = {value: place for value, place in held.items() if last.get(value, -1) > index}
    return size, found


def first_fit(held: Sequence[tuple[int, int]], count: int) -> int:
    """Where the first gap of so many numbers begins; the held places are in order."""
    start = 0
    for begin, end in held:
        if begin - start >= count:
            return start
        start = max(start, end)
    return start
