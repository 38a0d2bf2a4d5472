"""The benchmark of tallies measures what it says, on ballots small enough for a test."""

from __future__ import annotations

import math

import pytest
import torch

from fedvote import packed
from fedvote.studies.bench.tally import measure, ways


@pytest.mark.parametrize("way", ways())
def test_every_way_is_measured_and_leaves_no_trace(way: str) -> None:
    before = torch.get_num_threads(), packed._loops
    row = measure(way, weights=6400, clients=3, repeats=1)
    assert row["way"] == way and 0 < row["seconds"] < math.inf
    assert math.isnan(row["extra_megabytes"]) or row["extra_megabytes"] >= 0
    assert (torch.get_num_threads(), packed._loops) == before


def test_ways_that_count_count_the_same_ballots() -> None:
    known = ways()
    counted = [known[way](6400, 3)() for way in known if way.startswith("packed, counted")]
    assert len(counted) == 3 and all(torch.equal(result, counted[0]) for result in counted)


def test_a_stream_and_a_mean_have_a_number_for_every_weight() -> None:
    known = ways()
    streamed = known["packed, 100 ballots streamed"](6400, 3)()
    assert streamed.shape == (1, 6400) and 0 < int(streamed.max()) <= 100
    assert known["numpy float32 mean"](6400, 3)().shape == (6400,)
