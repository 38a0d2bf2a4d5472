"""QSGD has no bias and the error of Lemma 4; the server averages what clients mean."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedvote import FedAvg
from fedvote.errors import ConfigError
from fedvote.methods import FedPAQ
from fedvote.methods.fedpaq import qsgd
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import Federation, merge, three_weights

DRAWS = 20_000


def draws(x: Tensor, levels: int) -> Tensor:
    """Many Q(x)."""
    norm: Tensor = torch.linalg.vector_norm(x)
    return qsgd(x.expand(DRAWS, -1), norm, levels, drawn(DRAWS, len(x))) * norm / levels


def drawn(*shape: int, round: int = 0) -> Tensor:
    return torch.rand(shape, generator=Key(0, round).torch("test"))


@pytest.mark.parametrize("levels", [1, 2, 7, 500])
def test_qsgd_is_the_formula_by_explicit_loops(levels: int) -> None:
    x = torch.randn(200, generator=Key(0).torch("x"))
    lots = drawn(200)
    found = qsgd(x, torch.linalg.vector_norm(x), levels, lots)
    norm = math.sqrt(sum(value**2 for value in x.tolist()))
    for value, lot, got in zip(x.tolist(), lots.tolist(), found.tolist(), strict=True):
        low = math.floor(levels * abs(value) / norm)
        probability = levels * abs(value) / norm - low
        assert got == math.copysign(low + (lot < probability), value)
    assert found.dtype == (torch.int8 if levels < 128 else torch.int16)


def test_values_on_a_level_are_kept_exactly() -> None:
    x = torch.tensor([3.0, 0.0, -4.0])
    for round in range(20):
        assert qsgd(x, torch.tensor(5.0), 5, drawn(3, round=round)).tolist() == [3, 0, -4]
        assert qsgd(torch.tensor([0.0, -0.3]), torch.tensor(0.3), 9, drawn(2, round=round)).tolist() == [0, -9]


def test_nothing_is_above_the_highest_level_even_where_the_norm_is_rounded_down() -> None:
    norm = torch.tensor(1.0)
    x = torch.tensor([1.0]).nextafter(torch.tensor([2.0])).expand(100_000)
    for levels in (1, 3, 2**14 - 1):
        assert set(qsgd(x, norm, levels, drawn(len(x))).tolist()) == {levels}


def test_an_update_of_zero_is_zero() -> None:
    assert not draws(torch.zeros(3), 4).any()


@pytest.mark.parametrize("levels", [1, 4])
def test_qsgd_has_no_bias(levels: int) -> None:
    x = torch.tensor([0.5, -1.0, 0.0, 2.0, 0.01])
    # a value lies between two levels a step apart, so its standard deviation is at most half a step
    step = float(torch.linalg.vector_norm(x)) / levels
    torch.testing.assert_close(draws(x, levels).mean(0), x, rtol=0, atol=4 * step / 2 / DRAWS**0.5)


def test_lemma_4_the_error_with_one_level() -> None:
    """E ||Q(x) - x||^2 = ||x||_2 ||x||_1 - ||x||_2^2, at most (sqrt(d) - 1) ||x||_2^2."""
    x = torch.randn(30, generator=Key(0).torch("x"))
    two, one = float(torch.linalg.vector_norm(x)), float(x.abs().sum())
    error = float((draws(x, 1) - x).square().sum(1).mean())
    assert error == pytest.approx(two * one - two**2, rel=0.02)
    assert two * one - two**2 <= (math.sqrt(30) - 1) * two**2


def test_the_server_averages_what_clients_mean_and_subtracts_it() -> None:
    method, network = FedPAQ(levels=2), three_weights()
    state = method.init(network, 2)
    ups = {
        "level": torch.tensor([[-2, -1, 0, 1, 2], [0, 0, 0, 2, -2]], dtype=torch.int16),
        "norm": torch.tensor([[4.0], [10.0]]),
    }
    merged = merge(method, state, ups, [0, 1], Key(0, 1))
    # -4 -2 0 2 4 and 0 0 0 10 -10
    expected_D, expected_F = torch.tensor([-2.0, -1.0, 0.0]), torch.tensor([6.0, -3.0])
    torch.testing.assert_close(merged["voted"], network.start.voted - expected_D)
    torch.testing.assert_close(merged["float"], network.start.floats - expected_F)


def test_every_bucket_is_rounded_by_its_own_norm() -> None:
    """Two weights that are large, and others that are small: with a norm each, the small ones are not noise."""
    method, network = FedPAQ(bucket=2), three_weights()
    state = method.init(network, 1)
    ups = {
        "level": torch.tensor([[1, -1, 0, 1, 1]], dtype=torch.int8),
        "norm": torch.tensor([[10.0, 0.5, 0.25]]),  # weights 0 and 1, 2 and 3, and 4
    }
    merged = merge(method, state, ups, [0], Key(0, 1))
    torch.testing.assert_close(merged["voted"], network.start.voted - torch.tensor([10.0, -10.0, 0.0]))
    torch.testing.assert_close(merged["float"], network.start.floats - torch.tensor([0.5, 0.25]))


def test_smaller_buckets_have_smaller_errors_and_single_weights_none() -> None:
    exact = Federation(FedAvg()).states([range(5)])[-1]["voted"]
    found = [Federation(FedPAQ(bucket=bucket)).states([range(5)])[-1]["voted"] for bucket in (0, 8, 3, 1)]
    errors = [float((voted - exact).square().sum()) for voted in found]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-9 < errors[-2]


def test_with_many_levels_it_is_fedavg() -> None:
    fine, exact = Federation(FedPAQ(levels=2**14 - 1)), Federation(FedAvg())
    found, expected = (federation.states([range(5)])[-1] for federation in (fine, exact))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=0, atol=1e-5)
    assert not torch.allclose(found["voted"], fine.network.start.voted, atol=1e-3)


def test_plain_levels_take_whole_bits_and_coded_ones_less() -> None:
    network = Network(nn.Sequential(nn.Linear(6, 400, bias=False), nn.BatchNorm1d(400), nn.Linear(400, 3, bias=False)))
    sizes = {}
    for coding in ("plain", "entropy"):
        federation = Federation(FedPAQ(coding=coding), network)
        _, frames = federation.frames(federation.start(), 1, [0])
        sizes[coding] = len(frames[0])
    assert sizes["plain"] == 39 + (9 + 1 + 2 * 3600 // 8) + (9 + 4) + 4  # two bits for -1, 0 and +1
    assert sizes["entropy"] < sizes["plain"] / 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"levels": 0}, "levels is 0, expected 1 to 16383; the paper has 1"),
        ({"levels": 16384}, "levels is 16384, expected 1 to 16383"),
        ({"bucket": -1}, "bucket is -1, expected 0 (one norm for all weights)"),
        ({"coding": "morse"}, "coding is 'morse', expected one of: entropy, plain"),
        ({"lr": 0.0}, "lr is 0.0, expected a"),
    ],
    ids=str,
)
def test_values_that_make_no_sense_are_refused_with_those_that_do(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        FedPAQ(**options)
