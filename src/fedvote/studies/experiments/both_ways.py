"""A view of runs by their traffic in both directions: accuracy by megabytes, bits a weight, megabytes to a target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fedvote.report.axis import log_axis
from fedvote.report.chart import Chart, accuracy_axis, line
from fedvote.report.lines import Series
from fedvote.report.number_text import decimal, mean, spread
from fedvote.studies.experiments.cells import Record, Runs
from fedvote.studies.experiments.views import Show, View

MEGABYTE = 1e6
WAYS = ("uplink", "downlink")


def both_ways(*targets: float) -> Show:
    """A view: accuracy by all bytes of all clients, up and down; and what reaching each target accuracy took."""

    def show(every: Sequence[Runs]) -> View:
        names = [runs.cell.name for runs in every]

        def one_line(runs: Runs) -> Series:
            xs = [sum(each) / MEGABYTE for each in zip(*(runs.so_far(f"{way}_bytes") for way in WAYS), strict=True)]
            notes = [f"round {index} \N{MIDDLE DOT} {decimal(x)} MB" for index, x in enumerate(xs, start=1)]
            return line(runs.cell.name, names, xs, runs.by_round("accuracy"), notes.__getitem__)

        lines = tuple(map(one_line, every))
        xs = [point.x for each in lines for point in each.points]
        x = log_axis(min(xs) / 1.1, max(xs) * 1.1)
        about = "megabytes of all clients, up and down, logarithmic"
        chart = Chart("accuracy-by-traffic", "Accuracy by traffic, up and down", lines, x, about, accuracy_axis(lines))
        head = ["", "Rounds", "Seeds", "Deployed", "Float", "Bits up", "Bits down", "Together",
                *(f"MB to {100 * target:g} %" for target in targets)]  # fmt: skip
        explain = (
            "Accuracy after the last round: means over seeds, with their standard deviation. Bits a weight and round, "
            "for one client, everything included. Megabytes of all clients in both directions until the deployed "
            "model first had an accuracy: means over seeds, if all reached it."
        )
        return View(chart.title, explain, head, [row(runs, targets) for runs in every], [chart])

    return show


def row(runs: Runs, targets: Sequence[float]) -> list[str]:
    up, down = (runs.so_far(f"{way}_bits_per_weight")[-1] / runs.rounds for way in WAYS)
    ends = [spread(runs.last(metric)) for metric in ("accuracy", "accuracy_float")]
    sizes = [reaching(target, runs) for target in targets]
    bits = [decimal(value) for value in (up, down, up + down)]
    return [runs.cell.name, str(runs.rounds), str(len(runs.by_seed)), *ends, *bits, *sizes]


def reaching(target: float, runs: Runs) -> str:
    """The mean megabytes to an accuracy, if all seeds reached it."""
    needed = [megabytes_to(target, run) for run in runs.by_seed.values()]
    reached = [megabytes for megabytes in needed if megabytes is not None]
    return decimal(mean(reached)) if len(reached) == len(needed) else "not reached"


def megabytes_to(target: float, run: Sequence[Record]) -> float | None:
    """Megabytes in both directions up to the first round with this accuracy; None if no round has it."""
    totals = accumulate(sum(record.get(f"{way}_bytes", 0) for way in WAYS) / MEGABYTE for record in run)
    reached = (total for record, total in zip(run, totals, strict=True) if record.get("accuracy", 0) >= target)
    return next(reached, None)
