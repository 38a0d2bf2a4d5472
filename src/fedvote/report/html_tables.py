"""The tables of the page: runs side by side, events, rounds, and the configuration."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fedvote.report.headline import NONE, decimal, headlines, percent, size, spread, writer
from fedvote.report.lines import colour_style
from fedvote.report.markup import Html, join, tag
from fedvote.report.run_page import Record, Run, number
from fedvote.tasks.goal import Shown

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

EVENTS = {
    "refused": "refused",
    "failed": "no vote",
    "absent": "absent",
    "late": "late",
    "second": "second vote",
    "turned_away": "turned away",
    "returned": "came back",
}
"""Event in metrics.jsonl -> its name on the page."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], class_: str | None = None) -> Html:
    """A table; the first cell of a row is its heading. If it is too wide, it scrolls, not the page."""
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag("div", tag("table", top, tag("tbody", *body), class_=class_), class_="scroll", tabindex="0")


def comparison_table(runs: Sequence[Run]) -> Html:
    """The headline numbers, one row a run, each with its colour in the charts."""
    names = [join(tag("i", class_="swatch", style=colour_style(index)), run.name) for index, run in enumerate(runs)]
    head = ["Run", *(headline.label for headline in headlines(runs[0]))]
    rows = [
        [name, *(join(item.value, tag("small", item.note)) for item in headlines(run))]
        for name, run in zip(names, runs, strict=True)
    ]
    return table(head, rows, "numbers")


def seeds_table(runs: Sequence[Run]) -> Html | None:
    """Mean and standard deviation over runs that differ only in their seed; None if there are no such runs."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        common = {key: value for key, value in run.config.items() if key != "seed"} | {"done": len(run.rounds)}
        groups.setdefault(json.dumps(common, sort_keys=True, default=str), []).append(run)
    rows = [seeds_row(group) for group in groups.values() if len({run.setting("seed") for run in group}) > 1]
    return table(["Runs", "Seeds", "Deployed", "Float", "Traffic in total"], rows, "numbers") if rows else None


def seeds_row(runs: Sequence[Run]) -> list[str]:
    def over_seeds(key: str) -> str:
        ends = [values[-1] for run in runs if (values := run.quality(key))]
        return spread(ends, runs[0].shown.percent) if len(ends) > 1 else NONE

    sent = statistics.mean(1e6 * (run.megabytes or [0])[-1] for run in runs)
    seeds = ", ".join(str(run.setting("seed")) for run in runs)
    return [
        ", ".join(run.name for run in runs),
        seeds,
        over_seeds(""),
        over_seeds("_float"),
        size(sent),
    ]


def rounds_table(run: Run) -> Html:
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


def events_table(run: Run) -> Html | None:
    """Votes that did not count, with reasons and rounds, and clients that came back; None if there are none."""
    rounds: dict[tuple[str, str, str], list[int]] = {}
    for record in run.rounds:
        for event, name in EVENTS.items():
            for client, reason in clients_and_reasons(record.get(event)):
                rounds.setdefault((name, client, reason), []).append(record["round"])
    if not rounds:
        return None
    order = list(EVENTS.values())
    ordered = sorted(rounds.items(), key=lambda item: (order.index(item[0][0]), len(item[0][1]), item[0]))
    rows = [[name, client, reason, str(len(when)), spans(when)] for (name, client, reason), when in ordered]
    return table(["Event", "Client", "Reason", "Times", "Rounds"], rows)


def clients_and_reasons(event: object) -> list[tuple[str, str]]:
    """The clients of an event, each with its reason, or with "" if the event has none."""
    if isinstance(event, Mapping):
        return [(str(client), reason if isinstance(reason, str) else "") for client, reason in event.items()]
    return [(str(client), "") for client in event] if isinstance(event, list) else []


def spans(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 as 1-3, 5 with an en dash."""
    groups = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])  # in a span, number - index is constant
    runs = [[value for _, value in group] for _, group in groups]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}\N{EN DASH}{run[-1]}" for run in runs)


def configuration(runs: Sequence[Run]) -> Html:
    """Small tables for one run; for several, one table with a column a run, in which differing rows stand out."""
    flat = [dict(flatten(run.config)) for run in runs]
    groups: dict[str, list[Keys]] = {}
    for path in dict.fromkeys(path for settings in flat for path in settings):
        groups.setdefault(path[0] if len(path) > 1 else "run", []).append(path)
    bodies = [config_group(group, paths, flat) for group, paths in groups.items()]
    if len(runs) == 1:
        return tag("div", *(tag("table", body) for body in bodies), class_="config")
    head = tag("thead", tag("tr", tag("td"), *(tag("th", run.name, scope="col") for run in runs)))
    return tag("div", tag("table", head, *bodies, class_="settings"), class_="scroll", tabindex="0")


def config_group(group: str, paths: Sequence[Keys], flat: Sequence[Mapping[Keys, str]]) -> Html:
    def row(path: Keys) -> Html:
        values = [settings.get(path, NONE) for settings in flat]
        name = tag("th", ".".join(path[1:] or path), scope="row")
        differs = "differs" if len(set(values)) > 1 else None
        return tag("tr", name, *(tag("td", value) for value in values), class_=differs)

    heading = tag("tr", tag("th", group, scope="rowgroup", colspan=len(flat) + 1))
    return tag("tbody", heading, *map(row, paths))


def flatten(config: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, str]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, (*path, key))
        else:
            yield (*path, key), written(value)


def written(value: object) -> str:
    """A value as a person writes it: true instead of True, a list by its items."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(written, value)) or "none"
    return str(value) if value not in ("", {}) else "none"
