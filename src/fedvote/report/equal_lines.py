"""Lines that lie on each other: they take turns along the path, and a sentence names their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedvote.report.lines import Series
from fedvote.report.markup import Html, tag
from fedvote.report.over_seeds import Group

Path = tuple[tuple[float, float], ...]


def told_apart(series: Sequence[Series]) -> list[Series]:
    """The same series. Of those with equal points, each knows its turn."""
    groups = _equal(series)
    return [replace(each, turn=_turn(each, groups.get(_path(each), []))) for each in series]


def equal_runs(groups: Sequence[Group], series: Sequence[Series]) -> Html:
    """A sentence for each group of runs whose deployed models have the same line; nothing if there is none."""
    deployed = [each for each in series if "accuracy" in each.tokens]
    names = {f"run-{index}": group.name for index, group in enumerate(groups)}
    equal = [[names[each.tokens[0]] for each in lines] for lines in _equal(deployed).values() if len(lines) > 1]
    sentences = [f"{', '.join(some[:-1])} and {some[-1]} have the same line, drawn in turns." for some in equal]
    return tag("p", " ".join(sentences), class_="explain") if sentences else Html()


def _equal(series: Sequence[Series]) -> dict[Path, list[Series]]:
    groups: dict[Path, list[Series]] = {}
    for each in series:
        if each.points:
            groups.setdefault(_path(each), []).append(each)
    return groups


def _path(series: Series) -> Path:
    return tuple((point.x, point.y) for point in series.points)


def _turn(series: Series, group: Sequence[Series]) -> tuple[int, int]:
    """Lines of one run never take turns with each other: their dashes tell them apart."""
    others = [each for each in group if each.dash.split()[0] == series.dash.split()[0]]
    return (others.index(series), len(others)) if len(others) > 1 else (0, 1)
