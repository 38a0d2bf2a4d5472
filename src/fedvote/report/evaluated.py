"""The deployed network at the end of a run: confusion matrix, and its metric by class and by client."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fedvote.report.heat import HeatMap, heat_map
from fedvote.report.markup import Html, join, meter, tag
from fedvote.report.number_text import writer
from fedvote.report.read_run import Run
from fedvote.tasks.shown_metric import ACCURACY, Shown

MOST_ROWS = 64  # a longer list is folded
LONG = 20  # letters of a name that may be cut off in a narrow column
MOST_NUMBERS = 12  # classes up to which each cell of the matrix shows its number
EXPLAIN = (
    "The deployed network after the last round, one input at a time, on the test examples; by client, on some of the "
    "client's own training examples. The worst come first."
)


def evaluated(run: Run) -> Html | None:
    """None if the run has not ended, or is of an earlier version."""
    if not run.evaluation:
        return None
    parts = [confusion(run.evaluation), *bars(run, run.evaluation)]
    return join(tag("p", EXPLAIN, class_="explain"), tag("div", *parts, class_="beside"))


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
        widest=44,
        written=len(classes) <= MOST_NUMBERS,
    )
    return tag("div", tag("h3", "Confusion matrix"), tag("figure", heat_map(heat), data_chart="heat"))


def bars(run: Run, evaluation: Mapping[str, Any]) -> list[Html]:
    """Accuracy by class, which in multi-label is F1, and the metric by client."""
    by_class = ACCURACY if "confusion" in evaluation else Shown("f1", percent=False)
    return [
        bar_list("class", evaluation.get("by_class") or {}, by_class),
        bar_list("client", evaluation.get("by_client") or {}, run.shown, run.hostile),
    ]


def bar_list(word: str, values: Mapping[str, float | None], shown: Shown, hostile: Collection[str] = ()) -> Html:
    """A bar for each class or client, the worst first; nothing if there are none."""
    if not values:
        return Html()
    sign = 1 if shown.higher_is_better else -1
    worst_first = sorted(values.items(), key=lambda item: (item[1] is None, sign * (item[1] or 0)))
    rows = [bar(name, value, shown, hostile=name in hostile) for name, value in worst_first]
    content = tag("table", tag("tbody", *rows), class_="bars")
    folded = tag("details", tag("summary", f"{len(rows)} rows"), content) if len(rows) > MOST_ROWS else content
    return tag("div", tag("h3", f"{shown.title} by {word}"), folded)


def bar(name: str, value: float | None, shown: Shown, *, hostile: bool) -> Html:
    """Its name, a bar as long as its share, and its value. A metric that is no share has no bar."""
    whole = tag("td", meter(value)) if shown.percent and value is not None else tag("td")
    label = f"{name} (hostile)" if hostile else name
    head = tag("th", label, scope="row", class_="marked" if hostile else None, title=name if len(name) > LONG else None)
    return tag("tr", head, whole, tag("td", writer(shown)(value)))
