"""The deployed network at the end of a run: confusion matrix, and its metric by class and by client."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fedvote.report.headline import writer
from fedvote.report.heat import HeatMap, heat_map
from fedvote.report.html_tables import table
from fedvote.report.markup import Html, join, tag
from fedvote.report.run_page import Run
from fedvote.report.sections import titled
from fedvote.tasks.goal import ACCURACY, Shown

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
    """Accuracy by class, which in multi-label is F1, and the metric by client."""
    by_class = ACCURACY if "confusion" in evaluation else Shown("f1", percent=False)
    return [
        values_table("class", evaluation.get("by_class") or {}, by_class),
        values_table("client", evaluation.get("by_client") or {}, run.shown, run.hostile),
    ]


def values_table(word: str, values: Mapping[str, float | None], shown: Shown, hostile: Collection[str] = ()) -> Html:
    """A row for each class or client, the worst first; nothing if there are none."""
    if not values:
        return Html()
    sign, show = 1 if shown.higher_is_better else -1, writer(shown)
    worst_first = sorted(values.items(), key=lambda item: (item[1] is None, sign * (item[1] or 0)))
    rows = [[f"{each} (hostile)" if each in hostile else each, show(value)] for each, value in worst_first]
    content = table([word.capitalize(), shown.name], rows, "numbers")
    folded = tag("details", tag("summary", f"{len(rows)} rows"), content) if len(rows) > MOST_ROWS else content
    return join(tag("h3", f"{titled(shown)} by {word}"), folded)
