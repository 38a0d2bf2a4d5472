"""evaluation.json: the deployed network at the end of a run, class by class and client by client."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedvote.federation import Federation
from fedvote.network.evaluate import answers, judged
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.folder import EVALUATION
from fedvote.runs.json_table import without_nan
from fedvote.system.atomic_file import write
from fedvote.tasks.metrics import Metric

EACH, ALL = 200, 20_000  # examples to judge the network on: of one client, and of all clients together


def write_evaluation(folder: Path, federation: Federation, snapshot: Snapshot) -> None:
    """Evaluate the deployed network, with calibrated batch norm, and write the result."""
    network = federation.deployed(snapshot).to(federation.device)
    data, batch = federation.data, federation.plan.engine.test_batch
    found = judged(network, data, data.test.to(federation.device), federation.goal, batch)
    whole = {
        "metric": federation.goal.metric.name,
        "classes": list(data.classes),
        **without_nan(found),
        "by_client": by_client(federation, network),
    }
    write(folder / EVALUATION, json.dumps(whole) + "\n")


def by_client(federation: Federation, network: nn.Module) -> dict[str, Any]:
    """Client -> the metric on its own training examples, on the first few of them; None if it is not defined."""
    if federation.data_elsewhere:
        return {}
    each = max(1, min(EACH, ALL // len(federation.owned)))
    rows = [part[:each] for part in federation.owned]
    examples = federation.data.train.rows(torch.cat(rows)).to(federation.device)
    found, metric = answers(network, examples, federation.plan.engine.test_batch), federation.goal.metric
    sizes = [len(part) for part in rows]
    parts = zip(found.split(sizes), examples.y.split(sizes), strict=True)
    return {str(client): _number(metric, outputs, y) for client, (outputs, y) in enumerate(parts)}


def _number(metric: Metric, outputs_NC: Tensor, y: Tensor) -> float | None:
    """A metric that may not be defined on so few examples."""
    try:
        value = float(metric(outputs_NC, y))
    except Exception:  # the user's own function
        return None
    return value if math.isfinite(value) else None
