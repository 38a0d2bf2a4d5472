"""Before round 1 the soft vote is the shared start, every layer divided by its standard deviation."""

from __future__ import annotations

import statistics

import pytest
import torch
from torch import nn

from fedvote import FedVote
from fedvote.methods.fedvote import Votes
from fedvote.network.network import Network


def two_layers() -> Network:
    """Voted layers of 24 and 20 weights, whose deviations the start makes different, and a float one."""
    return Network(nn.Sequential(nn.Linear(6, 4, bias=False), nn.Linear(4, 5, bias=False), nn.Linear(5, 2)))


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_the_first_soft_vote_is_the_standardised_start_to_the_nearest_level(votes: Votes) -> None:
    network, method = two_layers(), FedVote(votes=votes)
    start = network.start.voted.tolist()
    expected = [
        max(-0.999, min(0.999, weight / statistics.pstdev(layer)))
        for layer in (start[:24], start[24:])
        for weight in layer
    ]
    models = method.models(method.init(network, 3))
    half_a_level = 1 / (method.grid - 1)
    found = models["float"].voted.tolist()
    most = 1 - 2 * method.p_min
    assert found == pytest.approx([max(-most, min(most, value)) for value in expected], abs=1.01 * half_a_level)
    assert models["deployed"].voted.tolist() == [
        (value > 0) - (value < 0) if votes == "binary" or abs(value) > 0.5 else 0 for value in expected
    ]


def test_the_scale_of_the_start_does_not_matter() -> None:
    small, large = two_layers(), two_layers()
    large.start = type(large.start)(8 * large.start.voted, large.start.floats)
    first, second = (FedVote().init(network, 3) for network in (small, large))
    assert torch.equal(first["level"], second["level"])
