"""The cost of a forward pass (Table III). It is counted: nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedvote.models import make_model
from fedvote.network.cost import costs
from fedvote.report.chart import Page
from fedvote.report.html_tables import table as as_html
from fedvote.report.sections import section
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.rows import cells, chosen, table

INPUTS, SHAPE, CLASSES = 100, (3, 32, 32), 10
PRINTED = {  # by network and weights: additions, multiplications, millijoules
    ("lenet5", "float"): (1.7e9, 1.8e9, 8.1),
    ("lenet5", "binary"): (1.7e9, 1.0e5, 1.5),
    ("vgg7", "float"): (4.8e10, 5.4e10, 242.9),
    ("vgg7", "binary"): (4.8e10, 2.1e5, 43.3),
}
NAMES = ("additions", "multiplications", "millijoules")


@dataclass(frozen=True)
class Costs:
    ignores: ClassVar[tuple[str, ...]] = ("settings", "rounds")
    about: str = "Table III: additions, multiplications and energy of a forward pass of 100 images"

    def names(self) -> dict[str, list[str]]:
        return {"rows": list(dict.fromkeys(network for network, _ in PRINTED))}

    def measure(self, asked: Asked, runs: Path) -> Iterator[Counted]:
        networks = chosen(asked.only, self.names()["rows"], self.about)
        rows = [row for network in networks for row in counted(network)]
        yield Counted(self.about, rows)


def counted(network: str) -> list[Mapping[str, Any]]:
    """A row for each kind of weights, beside the paper's numbers."""
    rows = [cost.row(INPUTS) for cost in costs(make_model(network, SHAPE, CLASSES), SHAPE, CLASSES)]
    return [{"network": network, **row, **printed(network, row["weights"])} for row in rows]


def printed(network: str, weights: str) -> dict[str, float | None]:
    values = PRINTED.get((network, weights), (None,) * len(NAMES))
    return {f"{name}, paper": value for name, value in zip(NAMES, values, strict=True)}


@dataclass(frozen=True)
class Counted:
    about: str
    rows: list[Mapping[str, Any]]

    def numbers(self) -> dict[str, Any]:
        return {"seeds": [], "config": {"inputs": INPUTS, "shape": SHAPE, "classes": CLASSES}, "rows": self.rows}

    def page(self) -> Page:
        explain = (
            "A vote times an activation is the activation or its negative: votes need additions only. Multiplications "
            "of the last layer, which is float, and of batch norm are counted; the paper has fewer. Ternary additions "
            "are an upper bound: a vote of 0 needs none."
        )
        facts = {"images": str(INPUTS), "of": "x".join(map(str, SHAPE))}
        shown = section("Counted", as_html(*cells(self.rows), "numbers"), explain=explain)
        return Page(self.about, facts, [shown], [])

    def text(self) -> str:
        return table(self.rows)


TABLE_3 = Costs()
