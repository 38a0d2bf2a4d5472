"""Sparse floats are lossless, as long as documented, and are written in one way only."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from fedvote.codecs import Sparse
from fedvote.core import Key, WireError

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
sparse = hnp.arrays(np.float32, st.integers(0, 67), elements=finite, fill=st.just(0.0)).map(torch.from_numpy)


def assert_round_trip(x: Tensor, nbytes: int) -> None:
    payload = Sparse(len(x)).encode(x)
    assert isinstance(payload, bytes) and len(payload) == nbytes
    back = Sparse(len(x)).decode(payload)
    assert back.dtype == torch.float32 and torch.equal(back, x)
    back += 1  # what comes back is the receiver's to change


def length(x: Tensor) -> int:
    """By the words of the file: 5 bytes, as many bit planes as the longest run of zeros needs, 4 bytes a value."""
    places = [-1, *(i for i, value in enumerate(x.tolist()) if value)]
    longest = max((b - a - 1 for a, b in pairwise(places)), default=0)
    planes = len(f"{longest:b}") if longest else 0
    return 5 + planes * ((len(places) - 1 + 7) // 8) + 4 * (len(places) - 1)


@given(sparse)
@example(torch.zeros(0))
@example(torch.zeros(67))
@example(torch.ones(67))
@example(torch.tensor([0.0, 1e-45, -3e38]))
def test_any_floats_survive(x: Tensor) -> None:
    assert_round_trip(x, length(x))


@pytest.mark.parametrize("count", range(18))
def test_every_length_survives(count: int) -> None:
    for step in (1, 2, 5):
        x = torch.where(torch.arange(count) % step == step - 1, torch.arange(count) + 1.0, 0.0)
        assert_round_trip(x, length(x))


def test_a_long_run_of_zeros_survives() -> None:
    x = torch.zeros(1_000_003)
    x[-1] = -0.5
    assert_round_trip(x, 5 + 20 + 4)  # a gap of 1,000,002 takes 20 bits, a byte each for the one value
    x[0] = 2.0
    assert_round_trip(x, 5 + 20 + 8)


def test_the_bytes_are_as_documented() -> None:
    """Two values, with one and two zeros before them: gaps of two bits, lowest plane first."""
    payload = Sparse(6).encode(torch.tensor([0, 1.5, 0, 0, -2.0, 0]))
    assert payload == struct.pack("<IB", 2, 2) + bytes([0b10000000, 0b01000000]) + struct.pack("<ff", 1.5, -2.0)


def test_a_hundredth_of_the_floats_costs_a_hundredth() -> None:
    generator = Key(0).torch("sparse")
    x = torch.zeros(100_000)
    x[torch.randperm(100_000, generator=generator)[:1000]] = 1.0
    assert len(Sparse(100_000).encode(x)) < 4 * 1000 + 10 * 125 + 6


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (), (0,)])
def test_what_has_another_shape_is_not_encoded(shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 floats"):
        Sparse(3).encode(torch.ones(shape))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused_by_the_receiver(bad: float) -> None:
    with pytest.raises(WireError, match="1 of 2 floats are infinite or not a number"):
        Sparse(3).decode(Sparse(3).encode(torch.tensor([1.0, 0.0, bad])))


def test_cut_and_longer_payloads_are_refused() -> None:
    payload = Sparse(40).encode(torch.eye(40)[7] + torch.eye(40)[20])
    for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0"]:
        with pytest.raises(WireError, match=r"\d+ bytes"):
            Sparse(40).decode(wrong)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_that_is_sent_is_refused(zero: float) -> None:
    with pytest.raises(WireError, match="a zero among the values"):
        Sparse(3).decode(struct.pack("<IBff", 2, 0, 1.0, zero))


def test_more_values_than_there_are_places_are_refused() -> None:
    with pytest.raises(WireError, match="are not 4 of 3 places"):
        Sparse(3).decode(struct.pack("<IBffff", 4, 0, 1, 1, 1, 1))
    with pytest.raises(WireError, match="are not 4294967295 of 3 places"):
        Sparse(3).decode(struct.pack("<IB", 2**32 - 1, 0))


def test_a_value_beyond_the_last_place_is_refused() -> None:
    assert Sparse(3).decode(struct.pack("<IBBBf", 1, 2, 0, 0x80, 1)).tolist() == [0, 0, 1]
    with pytest.raises(WireError, match="a place beyond the last of 3"):
        Sparse(3).decode(struct.pack("<IBBBf", 1, 2, 0x80, 0x80, 1))
    with pytest.raises(WireError, match="a place beyond the last of 3"):
        Sparse(3).decode(struct.pack("<IB", 1, 32) + b"\x80" * 32 + struct.pack("<f", 1))


@pytest.mark.parametrize("planes", [33, 63, 64, 255])
def test_gaps_of_more_than_32_bits_are_refused(planes: int) -> None:
    with pytest.raises(WireError, match=f"gaps of {planes} bits"):
        Sparse(3).decode(struct.pack("<IB", 1, planes) + b"\x80" * planes + struct.pack("<f", 1))


def test_more_planes_than_needed_are_refused() -> None:
    with pytest.raises(WireError, match="2 bits a gap where fewer would do"):
        Sparse(3).decode(struct.pack("<IBBBf", 1, 2, 0x80, 0, 1))
    with pytest.raises(WireError, match="9 bits a gap where fewer would do"):
        Sparse(3).decode(struct.pack("<IB", 0, 9))


def test_bits_beyond_the_end_of_a_plane_are_refused() -> None:
    with pytest.raises(WireError, match="beyond the end"):
        Sparse(3).decode(struct.pack("<IBBf", 1, 1, 0xC0, 1))


@given(st.integers(0, 20), st.integers(0, 4), st.integers(0, 4), st.binary(max_size=40))
def test_what_is_decoded_is_what_would_have_been_encoded(count: int, many: int, planes: int, rest: bytes) -> None:
    """Any bytes are either refused with WireError, or are the one encoding of what they decode to."""
    fitting = rest[: planes * -(-many // 8) + 4 * many]
    for payload in (rest, struct.pack("<IB", many, planes) + rest, struct.pack("<IB", many, planes) + fitting):
        try:
            x = Sparse(count).decode(payload)
        except WireError:
            continue
        assert x.shape == (count,) and x.dtype == torch.float32 and bool(x.isfinite().all())
        assert Sparse(count).encode(x) == payload


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("count", [0, 1, 11, 1000])
def test_a_gpu_makes_and_reads_the_same_bytes(count: int) -> None:
    x = torch.where(torch.arange(count) % 7 == 3, 1.5, 0.0)
    payload = Sparse(count).encode(x.cuda())
    assert payload == Sparse(count).encode(x)
    assert torch.equal(Sparse(count).decode(payload, "cuda").cpu(), x)
