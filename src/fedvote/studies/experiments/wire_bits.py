"""Bits on the wire: coded votes beside plain votes, and weighted tallies of different precision."""

from __future__ import annotations

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import by_round

WAYS = {coding: (f"method.coding={coding}",) for coding in ("entropy", "plain")} | {
    f"{levels} levels": ("method.reputation=proportional", f"method.grid={levels}") for levels in (65, 513, 4097, 32767)
}
WIRE = Comparison(
    "Coded and plain votes, and tallies of 65 to 32,767 levels: bits and accuracy, Fashion-MNIST among 31 clients",
    tuple(Cell(way, "fashion-mnist", settings) for way, settings in WAYS.items()),
    by_round,
    "Coded and plain votes are the same votes: only their bytes differ. Only tallies of weighted votes are rounded.",
)
