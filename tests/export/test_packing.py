"""Packing loses nothing, and leaves alone what votes cannot say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fedvote.export.packing import BITS, TRITS, pack

SHAPES = [(2, 40), (5, 33), (3, 4, 5, 7), (64, 9)]


def weight(values: tuple[int, ...], shape: tuple[int, ...], axis: int, seed: int) -> NDArray[np.float32]:
    """Votes times a positive number for every output."""
    rng = np.random.default_rng(seed)
    side = [1] * len(shape)
    side[axis] = shape[axis]
    scale = rng.uniform(0.001, 1000, side).astype(np.float32)
    made: NDArray[np.float32] = rng.choice(values, shape).astype(np.float32) * scale
    return made


@given(
    st.sampled_from([(-1, 1), (-1, 0, 1)]), st.sampled_from(SHAPES), st.sampled_from([0, -1]), st.integers(0, 2**32 - 1)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_what_is_packed_comes_back(values: tuple[int, ...], shape: tuple[int, ...], axis: int, seed: int) -> None:
    given = weight(values, shape, axis, seed)
    packed = pack(given)
    assert packed is not None
    assert np.array_equal(packed.votes * packed.scale, given)
    assert packed.scale.size == shape[packed.axis] and packed.scale.dtype == np.float32


@pytest.mark.parametrize(("values", "votes_a_byte"), [((-1, 1), 8), ((-1, 0, 1), 5)])
def test_a_byte_holds_eight_binary_votes_or_five_ternary_ones(values: tuple[int, ...], votes_a_byte: int) -> None:
    packed = pack(weight(values, (64, 101), 0, 0))
    assert packed is not None and packed.bytes.size == -(-64 * 101 // votes_a_byte)


def test_every_byte_stands_for_votes_of_its_own() -> None:
    assert len({tuple(row) for row in BITS.tolist()}) == 256 and set(BITS.flat) == {-1, 1}
    assert len({tuple(row) for row in TRITS.tolist()}) == 243 and set(TRITS.flat) == {-1, 0, 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_other_weights_are_left_alone(shape: tuple[int, ...]) -> None:
    made = weight((-1, 1), shape, 0, 0)
    made.flat[-1] *= 2  # one that is not like the others of its output
    made.flat[0] *= 2
    assert pack(made) is None
    assert pack(np.random.default_rng(0).normal(size=shape).astype(np.float32)) is None


def test_what_would_not_be_smaller_is_left_alone() -> None:
    assert pack(np.array([[1.0], [-1.0]], np.float32)) is None
    assert pack(np.zeros((0, 4), np.float32)) is None


def test_a_weight_of_zeros_is_ternary() -> None:
    packed = pack(np.zeros((4, 50), np.float32))
    assert packed is not None and packed.table is TRITS and not packed.votes.any()
