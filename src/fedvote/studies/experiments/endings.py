"""Endings of a run: a falling learning rate, and a rising `sign_share`."""

from __future__ import annotations

from fedvote.studies.experiments.broadcast_levels import CHANGES
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import CLIENTS
from fedvote.studies.experiments.hostile_digits import DIGITS
from fedvote.studies.experiments.views import by_round

SIGN = ("method.sign_share=1.0", "method.sign_schedule=linear", "method.sign_schedule.start=0.0",
        "method.sign_schedule.end=1.0", "method.sign_schedule.hold=0.6")  # fmt: skip
RATE = ("local.lr_schedule=cosine", "local.lr_schedule.end=0.02", "local.lr_schedule.hold=0.6")
ENDINGS: dict[str, tuple[str, ...]] = {
    "votes counted": (),
    "votes counted, falling rate": RATE,
    "votes counted, rising sign": SIGN,
    "votes counted, falling rate, rising sign": (*RATE, *SIGN),
    "changes counted": (CHANGES,),
    "changes counted, falling rate": (CHANGES, *RATE),
    "changes counted, rising sign": (CHANGES, *SIGN),
    "changes counted, falling rate, rising sign": (CHANGES, *RATE, *SIGN),
    "changes counted, sign from the start": (CHANGES, "method.sign_share=1.0"),
}
ENDINGS_DIGITS = Comparison(
    f"How a run ends: the rate falls and the share of the sign rises in its last two fifths; digits, {CLIENTS} clients",
    tuple(Cell(name, "quickstart", (*DIGITS, *settings)) for name, settings in ENDINGS.items()),
    by_round,
)
