"""Accuracy and loss are those of all test examples, however they are cut into batches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedvote.core import Examples
from fedvote.network.evaluate import judge, score
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import examples

NETWORK = Network(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)))  # no batch norm: batches do not matter


@pytest.mark.parametrize("batch", [1, 7, 64, 200, 1000])
def test_the_mean_is_over_examples_not_over_batches(batch: int) -> None:
    data = examples()
    data = Examples(data.x, torch.randint(3, data.y.shape, generator=Key(0).torch("labels")))
    logits = NETWORK(NETWORK.start.voted, NETWORK.start.floats, data.x)
    expected = float((logits.argmax(1) == data.y).float().mean()), float(F.cross_entropy(logits, data.y))
    assert 0 < expected[0] < 1
    assert score(lambda x: NETWORK(NETWORK.start.voted, NETWORK.start.floats, x), data, batch) == pytest.approx(
        expected, rel=1e-5
    )
    measured = judge(NETWORK, {"deployed": NETWORK.start, "float": NETWORK.start}, data, data.x, batch)
    assert (measured["accuracy"], measured["loss_float"]) == pytest.approx(expected, rel=1e-5)
