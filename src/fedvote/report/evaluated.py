"""The deployed network at the end of a run: confusion matrix, and its metric by class and by client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedvote.report.headline import writer
from fedvote.report.heat import HeatMap, heat_map
from fedvote.report.html_tables import table
from fedvote.report.markup import Html, join, tag
from fedvote.report.run_page import Run

MOST_ROWS = 12  # a longer table is folded
EXPLAIN = (
    "The deployed network after the last round, with fixed batch-norm statistics, on the test examples; by client, on "
    "some of the client's own training examples."
)


def evaluated(run: Run) -> Html | None:
    """None if the run has not ended, or is of an earlier version."""
    if not run.evaluation:
        return None
    parts = [confusion(run.evaluation), *tables(run, run.evaluation)]
    return join(tag("p", EXPLAIN, class_="explain"), *parts)


def confusion(evaluation: Mapping[str, Any]) -> Html:
    """A map of the classes that are answered, by the true class."""
    cells = evaluation.get("confusion")
    if not cells:
        return Html()
    classes = evaluation["classes"]
    heat = HeatMap(
        label=f"Confusion matrix: examples of {len(classes)} classes by the answer of the network",
        rows=classes,
        columns=classes,
        cells=cells,
        row_name="true class",
        column_name="answer",
        unit="examples",
    )
    return join(tag("h3", "Confusion matrix"), tag("figure", heat_map(heat), data_chart="heat"))


def tables(run: Run, evaluation: Mapping[str, Any]) -> list[Html]:
    """The metric by class, which in multi-label is F1, and by client; the smallest values first."""
    show, made = writer(run.shown), []
    for key, word in (("by_class", "class"), ("by_client", "client")):
        values: Mapping[str, float | None] = evaluation.get(key) or {}
        if not values:
            continue
        worst_first = sorted(values.items(), key=lambda item: (item[1] is None, item[1]))
        name = "f1" if key == "by_class" and run.shown.name != "accuracy" else run.shown.name
        marked = run.hostile if key == "by_client" else ()
        rows = [[f"{each} (hostile)" if each in marked else each, show(value)] for each, value in worst_first]
        content = table([word.capitalize(), name], rows, "numbers")
        folded = tag("details", tag("summary", f"{len(rows)} rows"), content) if len(rows) > MOST_ROWS else content
        made.append(join(tag("h3", f"{name[:1].upper()}{name[1:]} by {word}"), folded))
    return made
