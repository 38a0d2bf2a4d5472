"""Numbers and bytes that are no tallies are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedvote.codecs import Integers, Tallies, ans
from fedvote.codecs.tallies import CODED, MOST_VALUES, PLANES
from fedvote.errors import WireError
from tests.codecs.tally_checks import assert_numbers_or_refused, assert_round_trip, numbers


@pytest.mark.parametrize("values", [[-1, 4, 0], [32768, 4, 0], [2**31, 0, 0], [-(2**40), 0, 0]])
def test_numbers_beyond_the_ends_are_not_encoded(values: list[int]) -> None:
    with pytest.raises(WireError, match="is not 3 integers from 0 to 32767"):
        Tallies(3).encode(torch.tensor(values))


@pytest.mark.parametrize("values", [[0.5, 0.0, 0.0], [1.0, 2.0, 3.0], [float("inf"), 0.0, 0.0]])
def test_floats_are_not_encoded(values: list[float]) -> None:
    with pytest.raises(WireError, match="is not 3 integers from 0 to 32767"):
        Tallies(3).encode(torch.tensor(values))


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (), (0,)])
def test_what_has_another_shape_is_not_encoded(shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 integers"):
        Tallies(3).encode(torch.ones(shape, dtype=torch.int16))


def test_cut_and_longer_payloads_are_refused() -> None:
    for x in (numbers([0] * 900 + [3] * 100), numbers(torch.arange(1000) % 8)):
        payload = assert_round_trip(x)
        for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0", payload + b"\1\0\0\0"]:
            with pytest.raises(WireError):
                Tallies(1000).decode(wrong)


@pytest.mark.parametrize("how", [4, 5, 128, 255])
def test_other_ways_of_writing_than_planes_and_coded_are_refused(how: int) -> None:
    with pytest.raises(WireError, match="4 bytes are neither bit planes nor coded numbers"):
        Tallies(3).decode(bytes([how, 0, 0, 0]))


@pytest.mark.parametrize("values", [0, 1, MOST_VALUES + 1, 65535])
def test_too_few_and_too_many_values_are_refused(values: int) -> None:
    with pytest.raises(WireError, match=f"numbers of {values} values, expected 2 to 4097"):
        Tallies(3).decode(CODED + struct.pack("<H", values) + bytes([1] * 20_000))


def test_a_table_of_other_numbers_is_refused() -> None:
    """What makes a frame that is cut another one, if the words alone are looked at: fewer words are other numbers."""
    x = np.array([0, 0, 0, 2] * 250, np.int32)
    for shares in ([30000, 1, 35535], [49151, 2, 16383], [49150, 1, 16384, 1]):
        words = ans.encode([(x, np.array(shares) / 65536)])
        table = struct.pack(f"<{len(shares)}H", len(shares), *shares[1:])
        with pytest.raises(WireError, match="the shares do not match the numbers"):
            Tallies(1000).decode(CODED + table + words)
    table, words = struct.pack("<HHH", 3, 1, 16384), ans.encode([(x, np.array([49151, 1, 16384]) / 65536)])
    assert Tallies(1000).decode(CODED + table + words).tolist() == x.tolist()


def test_a_table_that_is_none_is_refused() -> None:
    for others in ([0, 1], [65535, 1]):
        with pytest.raises(WireError, match="not positive numbers that add up to 65536"):
            Tallies(3).decode(CODED + struct.pack("<HHH", 3, *others))


@given(
    st.integers(0, 40), st.sampled_from([b"", PLANES, CODED, CODED + b"\2\0", CODED + b"\3\0"]), st.binary(max_size=60)
)
@example(0, CODED + b"\2\0", b"\1\0")
@example(3, CODED + b"\2\0", b"\0\x80\1\0\0\0")
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_numbers_or_refused(count: int, start: bytes, rest: bytes) -> None:
    assert_numbers_or_refused(count, start + rest)


def test_a_payload_with_any_bit_flipped_is_numbers_or_refused() -> None:
    payload = assert_round_trip(numbers([0] * 900 + [3] * 100))
    for bit in range(8 * len(payload)):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_numbers_or_refused(1000, bytes(flipped))


def test_numbers_without_a_reference_have_one_encoding() -> None:
    same, spread = torch.zeros(300, dtype=torch.int16), torch.arange(4, dtype=torch.int16)
    with pytest.raises(WireError, match="bit planes where coded numbers take no more bytes"):
        Tallies(3000).decode(b"\0" + Integers(3000).encode(torch.arange(3000, dtype=torch.int16) % 7 // 6))
    assert torch.equal(Tallies(300).decode(Tallies(300).encode(same)), same)
    assert torch.equal(Tallies(4).decode(Tallies(4).encode(spread)), spread)
