"""Maps with a row for each client: its data, and the weight of its votes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedvote.report.heat import HeatMap, heat_map
from fedvote.report.left_out import in_order
from fedvote.report.markup import Html, join, tag
from fedvote.report.number_text import percent
from fedvote.report.read_run import Clients, Run, number
from fedvote.report.sections import folded, section


def client_data(runs: Sequence[Run]) -> Html:
    """A map of each client's classes; runs on the same data share one."""
    names: dict[Clients | None, list[str]] = {}
    for run in runs:
        names.setdefault(run.clients, []).append(run.name)
    parts = [folded(", ".join(sharing), data_map(clients), len(names)) for clients, sharing in names.items()]
    return section("Data of each client", *parts, explain="Number of examples of each class or group of targets.")


def data_map(clients: Clients | None) -> Html:
    if clients is None or not clients.counts or not clients.classes:
        return tag("p", "The clients' data are not known: this run has no clients.json.", class_="empty")
    heat = HeatMap(
        label=f"Examples by client and class: {len(clients.counts)} clients, {len(clients.classes)} classes",
        rows=[str(index) for index in range(len(clients.counts))],
        columns=clients.classes,
        cells=clients.counts,
        row_name="client",
        column_name="class",
        unit="examples",
        marked=clients.hostile,
        mark_name="hostile",
        totals="examples",
    )
    return tag("figure", heat_map(heat), data_chart="heat")


def vote_weights(run: Run) -> Html | None:
    """A map of vote weights by client and round; None if the run has none."""
    weights = [(str(record["round"]), record.get("vote_weight") or {}) for record in run.rounds]
    clients = sorted({client for _, row in weights for client in row}, key=in_order)
    if not clients:
        return None
    heat = HeatMap(
        label=f"Vote weight by client and round: {len(clients)} clients, {len(weights)} rounds",
        rows=clients,
        columns=[index for index, _ in weights],
        cells=[[weight(row, client) for _, row in weights] for client in clients],
        row_name="client",
        column_name="round",
        unit="vote weight",
        empty="not in the tally",
        marked=run.hostile,
        mark_name="hostile",
    )
    return join(tag("p", share_of_hostile(run), class_="explain"), tag("figure", heat_map(heat), data_chart="heat"))


def weight(row: dict[str, float], client: str) -> float | None:
    value = number(row, client)
    return float(f"{value:.4g}") if value is not None and math.isfinite(value) else None


def share_of_hostile(run: Run) -> str:
    row = next(row for record in reversed(run.rounds) if (row := record.get("vote_weight")))
    values = {client: weight(row, client) or 0 for client in row}
    total = sum(values.values())
    if not run.hostile or not total:
        return "The weight of each client's vote."
    share = sum(value for client, value in values.items() if client in run.hostile) / total
    hostile = len(run.hostile & set(values))
    return (
        f"The weight of each client's vote. In the last round, {hostile} hostile of {len(values)} clients held "
        f"{percent(share)} of the total weight."
    )
