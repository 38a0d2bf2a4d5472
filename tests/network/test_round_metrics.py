"""Accuracy and loss are those of all test examples, however they are cut into batches."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedvote.core import Examples
from fedvote.network.network import Network
from fedvote.network.round_metrics import judge, score
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


@pytest.mark.parametrize(("tests", "batch"), [(1, 1000), (3, 2), (5, 2), (17, 4)])
def test_batch_norm_never_sees_a_single_example(tests: int, batch: int) -> None:
    network = Network(nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)))
    few = examples().rows(slice(tests))
    measured = judge(network, {"deployed": network.start}, few, examples().x, batch)
    assert 0 <= measured["accuracy"] <= 1 and measured["loss"] > 0


def test_one_example_is_judged_by_calibrated_statistics() -> None:
    network = Network(nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)))
    x, one = examples().x, examples().rows(slice(1))
    measured = judge(network, {"deployed": network.start}, one, x, 1000)
    logits = network.calibrated(network.start, network.calibrate(network.start, x), one.x)
    assert measured["accuracy"] == measured["accuracy_calibrated"]
    assert measured["loss"] == pytest.approx(float(F.cross_entropy(logits, one.y)), rel=1e-5)
