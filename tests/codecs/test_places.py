"""Places are lossless, as long as documented, and are written in one way only."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from fedvote.codecs.positions import read_positions, weigh_positions, write_positions
from fedvote.errors import WireError
from fedvote.randomness import Key

AFTER = b"what comes after them"
places = st.sets(st.integers(0, 66)).map(sorted)


def length(index: list[int]) -> int:
    """By the words of the file: 5 bytes, and as many bit planes as the longest gap needs."""
    longest = max((b - a - 1 for a, b in pairwise([-1, *index])), default=0)
    return 5 + (len(f"{longest:b}") if longest else 0) * ((len(index) + 7) // 8)


def assert_round_trip(index: list[int], count: int) -> None:
    payload = write_positions(torch.tensor(index, dtype=torch.int64))
    assert len(payload) == weigh_positions(torch.tensor(index, dtype=torch.int64)) == length(index)
    back, rest = read_positions(payload + AFTER, count)
    assert back.tolist() == index and rest == AFTER


@given(places)
@example([])
@example(list(range(67)))
@example([66])
def test_any_places_survive(index: list[int]) -> None:
    assert_round_trip(index, 67)


def test_a_long_gap_survives() -> None:
    assert_round_trip([1_000_002], 1_000_003)
    assert_round_trip([0, 1_000_002], 1_000_003)


def test_the_bytes_are_as_documented() -> None:
    """Two places, with one and two others before them: gaps of two bits, lowest plane first."""
    assert write_positions(torch.tensor([1, 4])) == struct.pack("<IB", 2, 2) + bytes([0b10000000, 0b01000000])


def test_a_hundredth_of_the_places_takes_about_a_byte_each() -> None:
    index = torch.randperm(100_000, generator=Key(0).torch("places"))[:1000].sort().values
    assert weigh_positions(index) < 10 * 125 + 6


def test_cut_places_are_refused() -> None:
    payload = write_positions(torch.tensor([7, 20]))
    for size in range(len(payload)):
        with pytest.raises(WireError, match=r"\d+ bytes"):
            read_positions(payload[:size], 40)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (struct.pack("<IB", 4, 0), "are not 4 of 3 positions"),
        (struct.pack("<IB", 2**32 - 1, 0), "are not 4294967295 of 3 positions"),
        (struct.pack("<IBBB", 1, 2, 0x80, 0x80), "a position beyond the last of 3"),
        (struct.pack("<IB", 1, 32) + b"\x80" * 32, "a position beyond the last of 3"),
        *((struct.pack("<IB", 1, planes) + b"\x80" * planes, f"gaps of {planes} bits") for planes in (33, 64, 255)),
        (struct.pack("<IBBB", 1, 2, 0x80, 0), "2 bits per gap where fewer are enough"),
        (struct.pack("<IB", 0, 9), "9 bits per gap where fewer are enough"),
        (struct.pack("<IBB", 1, 1, 0xC0), "beyond the end"),
    ],
)
def test_what_nobody_would_have_written_is_refused(payload: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        read_positions(payload, 3)


@given(st.integers(0, 20), st.integers(0, 4), st.integers(0, 4), st.binary(max_size=40))
def test_what_is_read_is_what_would_have_been_written(count: int, many: int, planes: int, rest: bytes) -> None:
    """Any bytes are either refused with WireError, or begin with the one way to write what they say."""
    for payload in (rest, struct.pack("<IB", many, planes) + rest):
        try:
            index, after = read_positions(payload, count)
        except WireError:
            continue
        assert index.diff().gt(0).all() and (index < count).all()
        assert write_positions(index) + after == payload


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("count", [0, 1, 11, 1000])
def test_a_gpu_writes_the_same_bytes(count: int) -> None:
    index = (torch.arange(count) % 7 == 3).nonzero()[:, 0]
    assert write_positions(index.cuda()) == write_positions(index)
