"""Levels by their own histogram are lossless, near the entropy, and never longer than bit planes and a byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import Integers, Tallies
from fedvote.codecs.tallies import CODED, MOST_VALUES, PLANES
from fedvote.randomness import Key
from tests.codecs.tally_checks import assert_round_trip, numbers


def counted_votes(K: int, count: int, seed: int = 0) -> Tensor:
    """How many of K clients voted +1, for weights with any inclination."""
    generator = Key(seed).torch("tallies")
    inclination = torch.rand(count, generator=generator)
    return numbers((torch.rand(K, count, generator=generator) < inclination).sum(0))


@given(st.lists(st.integers(0, 3), max_size=80) | st.lists(st.integers(0, 32767), max_size=40))
@example([])
@example([0])
@example([1])
@example([32767])
@example([0] * 67)
@example([4096] * 67)
@settings(deadline=None)
def test_any_numbers_survive(values: list[int]) -> None:
    assert_round_trip(numbers(values))


@pytest.mark.parametrize("count", [*range(18), 1003])
@pytest.mark.parametrize("highest", [0, 1, 2, 5, 255])
def test_every_length_survives(count: int, highest: int) -> None:
    generator = Key(0).torch("tallies")
    assert_round_trip(torch.randint(highest + 1, (count,), generator=generator, dtype=torch.int16))
    assert_round_trip(numbers([highest] * count))


@pytest.mark.parametrize("K", [1, 2, 5, 31, 100])
@pytest.mark.parametrize("count", [10, 1003, 20_000])
def test_counts_of_equal_votes_survive(K: int, count: int) -> None:
    assert_round_trip(counted_votes(K, count))


@pytest.mark.parametrize("K", [5, 31, 100])
def test_counts_of_equal_votes_cost_their_entropy(K: int) -> None:
    """Most weights are decided, so that most levels are the lowest or the highest."""
    generator = Key(0).torch("tallies")
    inclination = torch.rand(200_000, generator=generator).round(decimals=1)
    x = numbers((torch.rand(K, 200_000, generator=generator) < inclination**2).sum(0))
    share = torch.bincount(x.long()).double() / len(x)
    entropy = float(-torch.special.xlogy(share, share).sum()) / np.log(2)
    bits = 8 * len(assert_round_trip(x)) / len(x)
    assert entropy <= bits <= 1.02 * entropy and bits < (K + 1).bit_length()


def test_the_shorter_of_planes_and_coded_is_sent() -> None:
    even, skewed = numbers(torch.arange(4000) % 8), numbers([0] * 3900 + [7] * 100)
    assert assert_round_trip(even)[:1] == PLANES  # three bits either way, and no table
    assert assert_round_trip(skewed)[:1] == CODED
    assert assert_round_trip(skewed[3895:3905])[:1] == PLANES  # ten numbers are shorter than any table


def test_planes_are_those_of_integers() -> None:
    x = numbers([0, 5, 3])
    assert Tallies(3).encode(x) == PLANES + Integers(3).encode(x)


def test_the_coded_bytes_are_as_documented() -> None:
    """Three values: a quarter are 2, none 1, the others 0. A share is a unit and its part of the 65533 others."""
    payload = assert_round_trip(numbers([0, 0, 0, 2] * 1000))
    shares = struct.pack("<HH", 1, 65536 - 1 - 49151)
    assert payload[:7] == CODED + struct.pack("<H", 3) + shares
    assert len(payload) % 4 == 3 and 8 * (len(payload) - 7) == pytest.approx(4000 * 0.8113, abs=64)


@pytest.mark.parametrize("lowest", [500, 1500, 3000])
def test_levels_far_from_zero_survive(lowest: int) -> None:
    """Values below the lowest do not occur, and yet have a share each, which the others have to leave them."""
    generator = Key(0).torch("tallies")
    x = torch.randint(lowest, lowest + 1001, (60_000,), generator=generator, dtype=torch.int16)
    assert assert_round_trip(x)[:1] == CODED


@pytest.mark.parametrize("spread", [1, 30, 400])
def test_the_whole_grid_survives(spread: int) -> None:
    generator = Key(0).torch("tallies")
    x = numbers((2048 + spread * torch.randn(60_000, generator=generator)).clamp(0, 4096))
    assert assert_round_trip(x)[:1] == CODED
    assert_round_trip(numbers([0, 4096] * 10_000))


def test_more_values_than_the_grid_has_are_sent_as_planes() -> None:
    assert assert_round_trip(numbers([0] * 50_000 + [MOST_VALUES]))[:1] == PLANES
    assert assert_round_trip(numbers([0] * 50_000 + [MOST_VALUES - 1]))[:1] == CODED
