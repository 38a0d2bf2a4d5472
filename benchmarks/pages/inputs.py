"""What quantisers are given, as histograms beside the distributions that the paper expects."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fedvote.config import read
from fedvote.report.axis import Axis, axis_from_zero, step_size, steps_between
from fedvote.report.sections import section
from pages.chart import Chart, Page, facts_of, line, panels

TITLES = {
    "updates": ("Updates", "Figure 3 (a)", "change of a weight", "Gaussian"),
    "probabilities": ("Vote probabilities", "Figure 3 (b)", "probability of a vote of +1", "symmetric Beta"),
}


def page(data: Mapping[str, Any]) -> Page:
    charts = [chart(name, one) for name, one in data["histograms"].items()]
    explain = (
        "One client after one round: what a method that sends updates has to round, and what FedVote rounds. Shares of "
        "weights in bins, beside the distribution of the same mean and variance that the paper expects."
    )
    facts = facts_of(read(data["preset"], data["settings"]), data["environment"], [1])
    return Page(
        f"What quantisers are given: {data['preset']}",
        facts,
        [section("Histograms", panels(charts), explain=explain)],
        charts,
    )


def chart(name: str, one: Mapping[str, Any]) -> Chart:
    title, figure, x_name, fitted = TITLES[name]
    middles = [(a + b) / 2 for a, b in pairwise(one["edges"])]
    names = ["measured", "expected"]
    shares = {"measured": one["share"], "expected": one["expected"]}
    series = tuple(line(each, names, middles, shares[each], lambda i: f"{middles[i]:.3g}") for each in names)
    low, high = one["edges"][0], one["edges"][-1]
    x = Axis(low, high, steps_between(low, high, step_size(high - low, 6)))
    y = axis_from_zero(100 * max(*one["share"], *one["expected"]))
    return Chart(name, f"{title}, {fitted}", series, x, x_name, y, figure)
