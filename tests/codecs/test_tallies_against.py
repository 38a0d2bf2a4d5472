"""Levels against numbers that the receiver holds cost what those do not tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import Tallies
from fedvote.codecs.tallies import AGAINST
from fedvote.errors import NoReferenceError, WireError
from fedvote.randomness import Key
from tests.codecs.tally_checks import assert_numbers_or_refused, assert_round_trip, numbers


def two_rounds(K: int, count: int, drift: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Counts of +1 in two rounds, of clients that vote by the soft vote of the first in the second."""
    generator = Key(seed).torch("tallies")
    inclination = torch.rand(count, generator=generator)
    first = (torch.rand(K, count, generator=generator) < inclination).sum(0)
    second = (torch.rand(K, count, generator=generator) < first / K + drift).sum(0)
    return numbers(first), numbers(second)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=90)
    | st.lists(st.tuples(st.integers(0, 32767), st.integers(0, 4)), max_size=40)
)
@example([])
@example([(0, 4)])
@settings(deadline=None)
def test_any_numbers_survive_against_any_others(pairs: list[tuple[int, int]]) -> None:
    x, held = numbers([x for x, _ in pairs]), numbers([held for _, held in pairs])
    assert_round_trip(x, held, 5)


@pytest.mark.parametrize("count", [*range(18), 1003, 30_000])
@pytest.mark.parametrize("K", [1, 2, 31])
def test_the_next_count_survives(K: int, count: int) -> None:
    held, x = two_rounds(K, count)
    assert_round_trip(x, held, K + 1)


@pytest.mark.parametrize(("K", "drift"), [(5, 0.0), (31, 0.0), (31, 0.1), (60, 0.0)])
def test_the_next_count_costs_what_the_last_does_not_tell(K: int, drift: float) -> None:
    """The entropy of one number if the other is known."""
    held, x = two_rounds(K, 400_000, drift)
    joint = torch.bincount(held.long() * (K + 1) + x.long(), minlength=(K + 1) ** 2).double().view(K + 1, K + 1)
    alone, both = (float(-torch.special.xlogy(n / len(x), n / len(x)).sum()) / np.log(2) for n in (joint.sum(1), joint))
    bits = 8 * len(assert_round_trip(x, held, K + 1)) / len(x)
    table = 16 * K * (K + 1) / len(x)
    assert both - alone <= bits <= 1.01 * (both - alone) + table
    assert bits < 0.8 * 8 * len(Tallies(len(x)).encode(x)) / len(x)


@pytest.mark.parametrize("levels", [4097, 32767])
def test_held_numbers_of_many_levels_are_taken_in_ranges(levels: int) -> None:
    generator = Key(0).torch("tallies")
    held = torch.randint(levels, (60_000,), generator=generator, dtype=torch.int16)
    x = numbers((31 * held.double() / levels + torch.rand(60_000, generator=generator)).int())
    payload = assert_round_trip(x, held, levels)
    assert payload[:1] == AGAINST and len(payload) < 0.7 * len(Tallies(len(x)).encode(x))


def test_held_numbers_that_tell_nothing_cost_nothing() -> None:
    held, x = two_rounds(31, 20_000)[0], two_rounds(31, 20_000, seed=1)[1]
    assert assert_round_trip(x, held, 32) == Tallies(len(x)).encode(x)


def test_who_holds_numbers_can_be_told_without_them() -> None:
    held, x = two_rounds(31, 20_000)
    assert torch.equal(Tallies(len(x), held, 32).decode(Tallies(len(x)).encode(x)), x)


def test_who_holds_none_refuses_what_is_told_against_them() -> None:
    held, x = two_rounds(31, 20_000)
    payload = Tallies(len(x), held, 32).encode(x)
    assert payload[:1] == AGAINST
    with pytest.raises(NoReferenceError, match="does not have"):
        Tallies(len(x)).decode(payload)


def test_who_holds_others_refuses_what_is_told_against_them() -> None:
    held, x = two_rounds(31, 20_000)
    other = held.clone()
    other[7] ^= 1
    with pytest.raises(NoReferenceError, match="another broadcast"):
        Tallies(len(x), other, 32).decode(Tallies(len(x), held, 32).encode(x))


def test_what_is_told_against_others_is_refused_if_it_is_damaged() -> None:
    held, x = two_rounds(5, 2000)
    payload = assert_round_trip(x, held, 6)
    assert payload[:1] == AGAINST
    for size in range(len(payload)):
        with pytest.raises(WireError):
            Tallies(2000, held, 6).decode(payload[:size])
    for bit in range(0, 8 * len(payload), 7):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_numbers_or_refused(2000, bytes(flipped), held, 6)
