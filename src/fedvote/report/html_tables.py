"""The tables of the page: runs side by side, events, rounds, and the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedvote.report.headline import columns
from fedvote.report.left_out import event_rows
from fedvote.report.line_look import patterned, swatched
from fedvote.report.markup import Html, join, tag
from fedvote.report.number_text import NONE, decimal, percent, size, writer
from fedvote.report.over_seeds import Group, several_seeds
from fedvote.report.read_run import Record, Run, number
from fedvote.report.run_sentence import written
from fedvote.tasks.shown_metric import Shown

Keys = tuple[str, ...]
"""The path to a value in a configuration."""

ACCURACY = "accuracy"  # runs that are judged by another metric have its name instead
ROUND_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "accuracy": ("Deployed", percent),
    "accuracy_calibrated": ("Deployed, calibrated", percent),
    "accuracy_float": ("Float", percent),
    "accuracy_float_calibrated": ("Float, calibrated", percent),
    "backdoor_success": ("Backdoor", percent),
    "loss": ("Loss", decimal),
    "uplink_bytes": ("Uplink", size),
    "downlink_bytes": ("Downlink", size),
    "uplink_bits_per_weight": ("Bits up", decimal),
    "downlink_bits_per_weight": ("Bits down", decimal),
    "seconds": ("Seconds", decimal),
}
BACKDOOR = ("backdoor_success",)  # columns of runs whose attack has a trigger

MOST_ROWS = 12  # a longer table of events is folded


@dataclass(frozen=True)
class Cell:
    """A cell of a table that sorts: its text, and its place among the others."""

    text: str
    number: float | None


def table(
    head: Sequence[str], rows: Sequence[Sequence[str | Cell]], class_: str | None = None, *, sorts: bool = False
) -> Html:
    """A table; the first cell of a row is its heading. If it is too wide, it scrolls, not the page.

    `sorts`: the page's script makes a button of every column's name.
    """
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    body = [tag("tr", cell("th", row[0], scope="row"), *(cell("td", each) for each in row[1:])) for row in rows]
    whole = tag("table", top, tag("tbody", *body), class_=class_, data_sorts="" if sorts else None)
    return tag("div", whole, class_="scroll", tabindex="0")


def cell(name: str, content: str | Cell, **attributes: object) -> Html:
    if isinstance(content, Cell):
        value = "" if content.number is None else f"{content.number:.10g}"
        return tag(name, content.text, data_value=value, **attributes)
    return tag(name, content, **attributes)


def comparison_table(groups: Sequence[Group]) -> Html:
    """The numbers that answer, one row a run or one row a group of seeds, each with its colour in the charts."""
    head = ["Runs" if several_seeds(groups) else "Run", *labels(groups)]
    rows = [
        row_of([swatched(group.name, index, patterned("solid", index))], group, groups)
        for index, group in enumerate(groups)
    ]
    return table(head, rows, "numbers", sorts=True)


def labels(groups: Sequence[Group]) -> list[str]:
    """The names of the columns. Where runs are judged by different metrics, the first names none."""
    judged, *others = (item.label for item in columns(groups[0]))
    return [judged if len({group.shown for group in groups}) == 1 else "Deployed network", *others]


def row_of(names: Sequence[str], group: Group, groups: Sequence[Group]) -> list[str | Cell]:
    return [*names, *(Cell(item.value, item.number) for item in columns(group, groups))]


def every_run(groups: Sequence[Group]) -> Html:
    """All runs of groups of seeds, with the colour of their group."""
    pairs = [(index, Group(run.name, (run,))) for index, group in enumerate(groups) for run in group.runs]
    head = ["Run", "Seed", *labels(groups)]
    rows = [
        row_of([swatched(run.name, index, patterned("solid", index)), written(run.seeds[0])], run, groups)
        for index, run in pairs
    ]
    return table(head, rows, "numbers", sorts=True)


def events_table(run: Run) -> Html | None:
    """Every event with its clients, its reason and its rounds; None if there are none."""
    rows = list(event_rows(run))
    if not rows:
        return None
    content = table(["Event", "Client", "Reason", "Times", "Rounds"], rows, "events")
    return tag("details", tag("summary", f"{len(rows)} rows"), content) if len(rows) > MOST_ROWS else content


def rounds_table(run: Run) -> Html | None:
    """Every round; None if none is finished."""
    if not run.rounds:
        return None
    columns = [key for key in ROUND_COLUMNS if key not in BACKDOOR or run.column(key)]
    head = ["Round", *(ROUND_COLUMNS[key][0] for key in columns), "Clients"]
    return table(head, [round_row(record, columns, run.shown) for record in run.rounds], "numbers")


def network_table(run: Run) -> Html | None:
    """Every layer, what happens to it, and its bits; None for runs of earlier versions."""
    if run.network is None:
        return None
    head = ["Layer", "Shape", "Weights", "", "Bits up", "On device"]
    notes = [tag("p", run.network.total), *(tag("p", f"Warning: {warning}.") for warning in run.network.warnings)]
    layers = table(head, run.network.layers, "numbers")
    return join(*notes, tag("details", tag("summary", f"{len(run.network.layers)} layers as a table"), layers))


def round_row(record: Record, columns: Sequence[str], shown: Shown) -> list[str]:
    def cell(key: str) -> str:
        show = writer(shown) if key.startswith(ACCURACY) else ROUND_COLUMNS[key][1]
        return show(number(record, key.replace(ACCURACY, shown.name)))

    values = map(cell, columns)
    return [str(record["round"]), *values, str(len(record.get("clients") or ()))]


def configuration(runs: Sequence[Run]) -> Html:
    """Small tables for one run. For several, the settings that differ, a column a run, and folded those they share."""
    flat = [dict(flatten(run.config)) for run in runs]
    paths = list(dict.fromkeys(path for settings in flat for path in settings))
    if len(runs) == 1:
        return tag("div", *(tag("table", body) for body in config_groups(paths, flat)), class_="config")
    differ = [path for path in paths if len({settings.get(path, NONE) for settings in flat}) > 1]
    same = [path for path in paths if path not in differ]
    shown = settings_table(differ, flat, runs) if differ else tag("p", "All settings are the same.", class_="empty")
    others = tag("summary", f"{len(same)} settings that all runs share")
    return join(shown, tag("details", others, settings_table(same, flat[:1], runs[:1], named=False)) if same else "")


def settings_table(
    paths: Sequence[Keys], flat: Sequence[Mapping[Keys, str]], runs: Sequence[Run], *, named: bool = True
) -> Html:
    names = tag("thead", tag("tr", tag("td"), *(tag("th", run.name, scope="col") for run in runs))) if named else Html()
    return tag(
        "div", tag("table", names, *config_groups(paths, flat), class_="settings"), class_="scroll", tabindex="0"
    )


def config_groups(paths: Sequence[Keys], flat: Sequence[Mapping[Keys, str]]) -> list[Html]:
    """A body of a table for each part of the configuration."""
    groups: dict[str, list[Keys]] = {}
    for path in paths:
        groups.setdefault(path[0] if len(path) > 1 else "run", []).append(path)
    return [config_group(group, inside, flat) for group, inside in groups.items()]


def config_group(group: str, paths: Sequence[Keys], flat: Sequence[Mapping[Keys, str]]) -> Html:
    def row(path: Keys) -> Html:
        values = [settings.get(path, NONE) for settings in flat]
        return tag("tr", tag("th", ".".join(path[1:] or path), scope="row"), *(tag("td", value) for value in values))

    heading = tag("tr", tag("th", group, scope="rowgroup", colspan=len(flat) + 1))
    return tag("tbody", heading, *map(row, paths))


def flatten(config: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, str]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, (*path, key))
        else:
            yield (*path, key), written(value)
