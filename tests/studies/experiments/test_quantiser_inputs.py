"""Histograms have every weight, and fit in mean and variance what they are drawn beside."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from fedvote.studies.experiments import Asked
from fedvote.studies.experiments.quantiser_inputs import Histograms, Inputs


@pytest.fixture(scope="module")
def found() -> Histograms:
    asked = Asked(settings=("local.steps=3",))
    (found,) = Inputs(preset="quickstart").measure(asked, Path("nowhere"))
    return found


def test_histograms_are_of_every_weight_and_fit_in_mean_and_variance(found: Histograms) -> None:
    for name, one in found.found.items():
        middles = [(a + b) / 2 for a, b in pairwise(one["edges"])]
        centre = 0.5 if name == "probabilities" else 0
        measured, expected = (
            sum(share * (x - centre) ** 2 for share, x in zip(one[kind], middles, strict=True))
            for kind in ("share", "expected")
        )
        assert sum(one["share"]) == pytest.approx(1, abs=0.01), name
        assert measured == pytest.approx(expected, rel=0.1), name


def test_a_histogram_is_drawn_beside_what_is_expected(found: Histograms) -> None:
    charts = found.page().charts
    assert [chart.name for chart in charts] == ["updates", "probabilities"]
    for chart, one in zip(charts, found.found.values(), strict=True):
        drawn = {series.name: [point.y / 100 for point in series.points] for series in chart.series}
        assert drawn == {"measured": pytest.approx(one["share"]), "expected": pytest.approx(one["expected"])}
        assert (chart.x.low, chart.x.high) == (one["edges"][0], one["edges"][-1])
