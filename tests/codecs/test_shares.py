"""Shares are positive, add up to one, and are near the probabilities, whatever those are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedvote.codecs.probabilities import UNIT, Shares, in_units, read_units, write_units
from fedvote.errors import WireError
from fedvote.randomness import Key

Rows = npt.NDArray[np.float64]


def rows(*probabilities: list[float]) -> Rows:
    return np.array(probabilities, np.float64)


def assert_shares_of(probabilities: Rows) -> Shares:
    shares = in_units(probabilities)
    assert shares.shape == probabilities.shape and shares.dtype == np.int64
    assert (shares >= 1).all() and (shares.sum(1) == 65536).all()
    # One unit for each of V values is set aside, and sums are rounded: both ends of a share by half a unit.
    off = np.abs(shares - (1 + probabilities * (UNIT - probabilities.shape[1])))
    assert off.max(initial=0) <= 1 + 1e-6
    return shares


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(any))
@example([0.0, 1.0])
@example([1.0, 0.0])
@example([1.0, 0.0, 0.0])
@example([0.0, 0.0, 1.0])
@example([1e-300, 1.0])
@example([1.0, 5e-324])
@example([0.5, 0.5])
@example([1 / 3, 1 / 3, 1 / 3])
def test_shares_are_positive_and_add_up_and_are_near_the_probabilities(weights: list[float]) -> None:
    p = rows(weights)
    p = p / p.max()  # lest tiny numbers lose their digits in the sum
    assert_shares_of(p / p.sum())


def test_shares_of_small_alphabets_are_typed_in() -> None:
    assert in_units(rows([0, 1], [1, 0], [0.5, 0.5], [0.25, 0.75])).tolist() == [
        [1, 65535],
        [65535, 1],
        [32768, 32768],
        [16385, 49151],
    ]
    assert in_units(rows([0, 0, 1], [0, 1, 0], [1, 0, 0])).tolist() == [[1, 1, 65534], [1, 65534, 1], [65534, 1, 1]]


def test_rows_that_do_not_add_up_to_one_have_shares_too() -> None:
    """By rounding error, or because nobody voted: the last value has what is left, and never less than a unit."""
    shares = in_units(rows([0.5, 0.5 + 1e-4, 0], [0, 0, 0], [0.5, 0.5 - 1e-4, 0], [1 + 1e-4, 0, 0]))
    assert (shares >= 1).all() and shares.sum(1).tolist() == [65536] * 4
    assert shares[1].tolist() == [1, 1, 65534] and shares[3].tolist() == [65534, 1, 1]


@pytest.mark.parametrize("V", [2, 3, 256, 1001, 4097])
@pytest.mark.parametrize("kind", ["equal", "one", "first", "last", "narrow", "random", "geometric"])
def test_many_values_have_positive_shares_too(V: int, kind: str) -> None:
    """Narrow: a few equal values among many that do not occur, as when levels are far from 0."""
    p = np.zeros((1, V))
    match kind:
        case "equal":
            p[:] = 1
        case "one":
            p[:, V // 2] = 1
        case "first":
            p[:, 0] = 1
        case "last":
            p[:, -1] = 1
        case "narrow":
            p[:, V // 2 :: 2] = 1
        case "random":
            p[:] = Key(0).numpy("shares").random(V) ** 4
        case "geometric":
            p[:] = 0.5 ** np.arange(V)
    assert_shares_of(p / p.sum())


def test_rows_are_independent_of_each_other() -> None:
    p = Key(1).numpy("shares").dirichlet([0.3, 0.3, 0.3], 50)
    assert np.array_equal(in_units(p), np.concatenate([in_units(row[None]) for row in p]))


@given(st.integers(0, 9), st.integers(2, 40), st.binary(max_size=9), st.integers(0, 2**20))
def test_shares_are_read_as_written_and_what_follows_is_left(count: int, V: int, more: bytes, seed: int) -> None:
    shares = in_units(Key(seed).numpy("shares").dirichlet(np.full(V, 0.1), count))
    payload = write_units(shares)
    assert len(payload) == 2 * count * (V - 1)
    got, rest = read_units(payload + more, count, V)
    assert np.array_equal(got, shares) and rest == more


def test_the_first_share_is_what_the_others_leave() -> None:
    shares, rest = read_units(bytes([2, 0, 0, 1]), 1, 3)
    assert shares.tolist() == [[65536 - 2 - 256, 2, 256]] and rest == b""
    assert write_units(shares) == bytes([2, 0, 0, 1])


@pytest.mark.parametrize(
    "others", [[0, 5], [5, 0], [65535, 1], [1, 65535], [40000, 30000], [65535, 65535], [32768, 32768]]
)
def test_shares_that_leave_nothing_for_a_value_are_refused(others: list[int]) -> None:
    with pytest.raises(WireError, match="not positive numbers that add up to 65536"):
        read_units(np.array(others, "<u2").tobytes(), 1, 3)


def test_a_table_that_is_cut_is_refused() -> None:
    for size in range(8):
        with pytest.raises(WireError, match=f"{size} bytes are too few for 2 rows of 3 shares"):
            read_units(bytes([1] * size), 2, 3)


@given(st.binary(max_size=40), st.integers(0, 5), st.integers(2, 6))
def test_any_bytes_are_shares_or_refused(payload: bytes, count: int, V: int) -> None:
    try:
        shares, rest = read_units(payload, count, V)
    except WireError:
        return
    assert shares.shape == (count, V) and (shares >= 1).all() and (shares.sum(1) == UNIT).all()
    assert write_units(shares) + rest == payload
